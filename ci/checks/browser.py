"""Drives a headless Chromium over its DevTools pipe: opens a page, presses keys, asks for values, takes pictures, and
gathers what the page says on the console. https://chromedevtools.github.io/devtools-protocol"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time


def program() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        # Ubuntu's package holds a script that wants a snap, which no container has.
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


class Browser:
    """One browser with one page. Use it in a `with`."""

    def __init__(self, path: str, deadline: float = 60.0):
        self._deadline = deadline
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The pipe lies on descriptors 3 and 4, which a shell puts there.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser} {to_browser}<&- {from_browser}>&-'
        if {to_browser, from_browser} & {3, 4}:
            command = f'exec 5<&{to_browser} 6>&{from_browser}; exec "$0" "$@" 3<&5 4>&6'
        self._process = subprocess.Popen(
            ["bash", "-c", command, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--hide-scrollbars", f"--user-data-dir={self._profile.name}",
             "--remote-debugging-pipe", "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._pending, self._next, self._session = b"", 0, None
        self.complaints: list[str] = []  # errors and warnings of the page
        self.requests: list[str] = []    # addresses that it asked for
        page = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def open(self, file: pathlib.Path, ready: str) -> float:
        """Opens the file and waits until the expression holds; the seconds that it took."""
        self._call("Page.navigate", url="about:blank")  # so that what holds is no longer that of the page before
        self.complaints, self.requests = [], []
        began = time.monotonic()
        self._call("Page.navigate", url=file.resolve().as_uri())
        while not self.ask(f"location.protocol === 'file:' && ({ready})"):
            if time.monotonic() - began > self._deadline:
                raise TimeoutError(f"{file}: {ready} does not come true; the page says {self.complaints or 'nothing'}")
            time.sleep(0.02)
        return time.monotonic() - began

    def resize(self, width: int, height: int):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                   mobile=False)

    def colour_scheme(self, scheme: str):
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def press(self, key: str, code: int, text: str = ""):
        """`code`: the key's Windows virtual key code."""
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                       **({"text": text} if text and kind == "keyDown" else {}))

    def type(self, text: str):
        self._call("Input.insertText", text=text)

    def ask(self, expression: str):
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self, file: pathlib.Path):
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _call(self, method: str, **parameters):
        self._next += 1
        wanted = self._next
        message = {"id": wanted, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._receive()
            if heard.get("id") == wanted:
                if "error" in heard:
                    raise RuntimeError(f"{method}: {heard['error']}")
                return heard["result"]
            self._note(heard)

    def _receive(self) -> dict:
        limit = time.monotonic() + self._deadline
        while b"\0" not in self._pending:
            if not select.select([self._read], [], [], max(0.0, limit - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("the browser went away")
            self._pending += more
        first, self._pending = self._pending.split(b"\0", 1)
        return json.loads(first)

    def _note(self, heard: dict):
        given = heard.get("params", {})
        if heard.get("method") == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif heard.get("method") == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in given["args"]))
        elif heard.get("method") == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
            self.complaints.append(given["entry"]["text"])
        elif heard.get("method") == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
