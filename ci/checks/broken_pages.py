"""Shows that the checks of pages can fail: breaks the page of a drill in one way after the other, and asks that each is
noticed for what it is."""
import pathlib

from checks import pages
from checks.browser import Browser

# What is broken: the text of the page, what stands there instead, and what must be said of it.
BROKEN = {
    "an error on the console": ("showAll();", "showAll(); console.error('x');", "on the console: x"),
    "an exception": ("showAll();", "showAll(); setTimeout(() => { throw new Error('x'); });", "on the console: Error"),
    "an address": ("</main>", "</main><img src='http://127.0.0.1:9/x.png'>", "it asks for http://127.0.0.1:9/x.png"),
    "too wide": ("</main>", "</main><div style='width: 2000px'>x</div>", "pixels wide in a window of 360"),
    "no dark colours": ("@media (prefers-color-scheme: dark)", "@media (prefers-color-scheme: none)", "it is white"),
    "the verdict is not first": ("main.append(make('h1'", "main.append('x', make('p')); main.append(make('h1'",
                                 "=== 'verdict'"),
    "filters that do nothing": ("control.addEventListener('change', changed)", "0", "resume_equals_golden"),
    "keys that do nothing": ("canvas.addEventListener('keydown'", "canvas.addEventListener('none'", "no mark of the"),
    "a disordered Tab key": ("id: 'timeline-canvas', tabindex: 0", "id: 'timeline-canvas', tabindex: 5",
                             "the Tab key reaches"),
    "a control without a name": ("make('label', {}, label + ' ', control)", "make('span', {}, control)",
                                 "controls have no name"),
    "no slices": ("drawRows(pen, view, colours, ranks);", "", "lacks the colours of"),
}


def self_test(page: Browser, drill: pathlib.Path) -> list[str]:
    """What went unnoticed."""
    text = drill.read_text(encoding="utf-8")
    broken = drill.with_name("broken.html")
    unnoticed = []
    for name, (right, wrong, said) in BROKEN.items():
        if right not in text:
            unnoticed.append(f"self-test: {name}: the page has no {right}")
            continue
        broken.write_text(text.replace(right, wrong), encoding="utf-8")
        found, _ = pages.examine(page, drill.parent, "broken", pages.drill)
        if not any(said in one for one in found):
            unnoticed.append(f"self-test: {name} goes unnoticed; said was {found or 'nothing'}")
    for file in drill.parent.glob("broken*"):
        file.unlink()
    return unnoticed
