"""The rules of style that a machine can check. Each takes a Source and yields findings; ALL_RULES lists them."""
import re
from typing import Iterator

from checks.source import Finding, Source

LINES_MAX = 400
COLUMNS_MAX = 120
FUNCTION_LINES_MAX = 70
ENGINE = ("engine/", "faults/")
CODE = (*ENGINE, "harness/")


def file_length(source: Source) -> Iterator[Finding]:
    if len(source.lines) > LINES_MAX:
        yield Finding(source.path, LINES_MAX + 1, "file_length", f"{len(source.lines)} lines; at most {LINES_MAX}")


def line_rules(source: Source) -> Iterator[Finding]:
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    for number, line in enumerate(source.lines, start=1):
        if len(line) > COLUMNS_MAX:
            yield Finding(source.path, number, "line_length", f"{len(line)} columns; at most {COLUMNS_MAX}")
        if "\t" in line:
            yield Finding(source.path, number, "tab", "a tab")
        if mark := marks.search(line):
            yield Finding(source.path, number, "unfinished", f"{mark[1]}: finish it, or file it elsewhere")


def file_name(source: Source) -> Iterator[Finding]:
    fitting = r"[a-z][a-z0-9_]*\.(h|cpp|html|css|js)|README\.md|FORMAT\.md"
    if source.path.startswith(CODE) and not re.fullmatch(fitting, source.name):
        yield Finding(source.path, 1, "file_name", "files of code are called snake_case.h or .cpp, or of a page")


def header_opening(source: Source) -> Iterator[Finding]:
    if not source.path.endswith(".h"):
        return
    if not source.lines or not re.match(r"//+ \w", source.lines[0]):
        yield Finding(source.path, 1, "purpose", "a header opens with a comment that says what it is for")
    if "#pragma once" not in source.lines:
        yield Finding(source.path, 1, "pragma_once", "#pragma once is missing")


def forbidden(rule: str, pattern: str, message: str, folders: tuple[str, ...], but: tuple[str, ...] = (),
              tests: bool = True):
    """A rule that a pattern occurs nowhere in the code of some folders."""
    expression = re.compile(pattern)

    def check(source: Source) -> Iterator[Finding]:
        if not source.is_code or not source.path.startswith(folders) or (but and source.path.startswith(but)):
            return
        if source.is_test and not tests:
            return
        for number, line in enumerate(source.code, start=1):
            match = expression.search(line)
            if match and not source.allowed(number):
                yield Finding(source.path, number, rule, f"{match.group().strip()}: {message}")
    return check


def unordered(source: Source) -> Iterator[Finding]:
    if not source.is_code:
        return
    for number, line in enumerate(source.code, start=1):
        above = source.lines[number - 2].lstrip() if number > 1 else ""
        commented = "//" in source.lines[number - 1] or above.startswith("//")
        if re.search(r"\bstd::unordered_", line) and not commented:
            yield Finding(source.path, number, "unordered",
                          "an unordered container needs a comment, here or just above, why its order is never seen")


def functions(source: Source) -> Iterator[tuple[int, int]]:
    """First and last line of each function that is not inside another: a brace that opens after a `)` in a namespace
    or class. A heuristic: good enough to find what does not fit a screen."""
    scopes: list[tuple[bool, int]] = []  # is a function (or inside one), first line
    head, head_line, parentheses = "", 0, 0
    in_directive = False
    for number, line in enumerate(source.code, start=1):
        if in_directive or line.lstrip().startswith("#"):
            in_directive = line.rstrip().endswith("\\")
            continue
        for character in line:
            if character == "{":
                inside = bool(scopes) and scopes[-1][0]
                is_type = re.search(r"\b(namespace|class|struct|union|enum)\b", head) and head.rstrip()[-1] != ")"
                is_function = not is_type and ")" in head
                scopes.append((inside or is_function, 0 if inside or not is_function else head_line))
                head, parentheses = "", 0
            elif character == "}":
                if scopes:
                    _, first = scopes.pop()
                    if first:
                        yield first, number
                head = ""
            elif character == ";" and parentheses <= 0:
                head = ""
            else:
                parentheses += (character == "(") - (character == ")")
                if not head.strip():
                    head_line = number
                head += character
        head += " "


def function_length(source: Source) -> Iterator[Finding]:
    if not source.is_code:
        return
    for first, last in functions(source):
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield Finding(source.path, first, "function_length",
                          f"a function of {last - first + 1} lines; at most {FUNCTION_LINES_MAX}")


ALL_RULES = [
    file_length, line_rules, file_name, header_opening, unordered, function_length,
    forbidden("using_namespace", r"\busing namespace (?!std::(literals|\w+_literals)\b)", "names stay qualified", CODE),
    forbidden("own_randomness",
              r"\b(s?rand|drand48)\s*\(|\brandom_device\b|\bmt19937|\bdefault_random_engine\b|\bstd::(shuffle|sample)\b"
              r"|\bstd::\w+_distribution\b", "the only random numbers are those of engine/base/rng.h", CODE),
    forbidden("own_randomness", r"\b(torch|at)::(rand|randn|randint|randperm|bernoulli|manual_seed)\s*\(",
              "random numbers are counter-based, not of LibTorch's hidden generator", CODE, tests=False),
    forbidden("wall_clock", r"\bsystem_clock\b|\bhigh_resolution_clock\b|\bgettimeofday\b|\bclock_gettime\b"
              r"|\btime\s*\(\s*(nullptr|NULL|0|&)", "time comes from the clock seam", CODE, but=("engine/os/",)),
    forbidden("wall_clock", r"\bsteady_clock::", "time comes from the clock seam", ENGINE, but=("engine/os/",),
              tests=False),
]
