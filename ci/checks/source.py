"""One source file as the checks see it: its lines, and the same lines with comments and text in quotes blanked out."""
import dataclasses
import itertools
import pathlib
import re


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message} [{self.rule}]"


class Source:
    def __init__(self, root: pathlib.Path, path: str):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8")
        self.lines = self.text.split("\n")
        if self.lines[-1] == "":
            self.lines.pop()
        self.name = path.rsplit("/", 1)[-1]
        self.is_code = path.endswith((".h", ".cpp"))
        self.code = blank_comments_and_text(self.text).split("\n")[:len(self.lines)] if self.is_code else self.lines

    @property
    def is_test(self) -> bool:
        """Tests, benchmarks, contracts (tests that several implementations share), and headers that are called test_x.h
        or whose opening comment says "For tests" may use more than the engine."""
        stem = self.name.rsplit(".", 1)[0]
        return (stem.endswith(("_test", "_bench", "_fuzz", "_contract")) or "/contract/" in self.path
                or (self.path.endswith(".h") and (stem.startswith("test_") or "For tests" in self.opening)))

    @property
    def opening(self) -> str:
        lines = itertools.takewhile(lambda line: line.startswith("//"), self.lines)
        return " ".join(line.lstrip("/ ") for line in lines)

    def allowed(self, line: int) -> bool:
        """Whether the line (from 1) gives its reason for breaking a rule: `// allowed: WHY`."""
        return re.search(r"// allowed: \S+ \S+", self.lines[line - 1]) is not None


TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def blank_comments_and_text(text: str) -> str:
    """Same length and lines; what is inside comments, strings and character literals becomes spaces. The paths of
    #include lines stay."""
    def blank(match: re.Match) -> str:
        start = text.rfind("\n", 0, match.start()) + 1
        if text[start:match.start()].lstrip().startswith("#include"):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return TOKEN.sub(blank, text)
