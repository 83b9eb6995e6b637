"""What the HTML pages must show, and what every one of them must do: say nothing on the console, ask for nothing, fit
a narrow and a wide window, light and dark, and be usable by keyboard."""
import pathlib
from typing import Callable

from checks.browser import Browser

READY = "document.body && document.body.dataset.ready === 'yes'"
WIDTHS = (360, 1440)


def says(page: Browser, *texts: str) -> list[str]:
    shown = page.ask("document.body.innerText")
    return [f"it does not say: {text}" for text in texts if text not in shown]


def holds(page: Browser, *expressions: str) -> list[str]:
    return [f"this does not hold: {expression}" for expression in expressions if page.ask(expression) is not True]


def verdict(page: Browser, word: str) -> list[str]:
    """The verdict is the first thing on the page."""
    return holds(page, f"document.querySelector('main > *').id === 'verdict'",
                 f"document.getElementById('verdict').innerText.startsWith('{word}')")


def choose(page: Browser, control: str, value: str):
    page.ask(f"(() => {{ const e = document.getElementById('{control}'); e.value = '{value}';"
             " e.dispatchEvent(new Event('change')); })()")


def drill(page: Browser) -> list[str]:
    wrong = verdict(page, "PASS")
    wrong += says(page, "kill rank 2 at step 3, backward", "useful tokens a second", "are equal after every step",
                  "resume_equals_golden", "acknowledged step 4 (4-3-1)")
    choose(page, "properties-filter", "fail")
    wrong += holds(page, "!document.body.innerText.includes('resume_equals_golden')")
    choose(page, "properties-filter", "all")
    choose(page, "events-kind", "fault_fired")
    wrong += holds(page, "document.getElementById('events-count').innerText.includes('3 events')")
    # By keyboard alone: into the field, and a text that one fault has.
    page.ask("document.getElementById('events-text').focus()")
    page.type("commit, sync")
    wrong += holds(page, "document.getElementById('events-count').innerText.includes('1 event')")
    return wrong


def mutant(page: Browser) -> list[str]:
    return verdict(page, "FAIL") + says(page, "protocol_unsynced_files", "partial_never_discoverable",
                                        "discovery fails although")


def difference(page: Browser) -> list[str]:
    return verdict(page, "FAIL") + says(page, "random_state_of_rank_zero", "first difference")


def crash(page: Browser) -> list[str]:
    return verdict(page, "FAIL") + says(page, "4-1-1 was acknowledged, and 2-1-1 was restored")


def exploration(page: Browser) -> list[str]:
    return says(page, "distinct_histories", "a_newer_commit_is_passed_over")


def mutants(page: Browser) -> list[str]:
    return verdict(page, "PASS") + says(page, "Mutants: 2 killed, 0 survived", "sampler_by_rank")


def long(page: Browser) -> list[str]:
    return verdict(page, "PASS") + holds(page, "data.total >= 50000")


ALL: dict[str, Callable[[Browser], list[str]]] = {
    "drill": drill, "mutant": mutant, "difference": difference, "crash": crash, "exploration": exploration,
    "mutants": mutants, "long": long}


def examine(page: Browser, folder: pathlib.Path, name: str, check) -> tuple[list[str], float]:
    """What is wrong with the page, and the seconds until it was there."""
    wrong = []
    page.colour_scheme("light")
    page.resize(WIDTHS[-1], 1000)
    file = folder / f"{name}.html"
    seconds = page.open(file, READY)
    for width in WIDTHS:
        page.resize(width, 1000)
        for scheme in ("light", "dark"):
            page.colour_scheme(scheme)
            # Two frames, so that what follows the size has been drawn anew.
            page.ask("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() => f(true))))")
            page.picture(folder / f"{name}-{width}-{scheme}.png")
            wide = page.ask("document.documentElement.scrollWidth")
            if wide > width:
                wrong.append(f"it is {wide} pixels wide in a window of {width}")
        back = page.ask("getComputedStyle(document.body).backgroundColor")
        if page.ask("matchMedia('(prefers-color-scheme: dark)').matches") and back == "rgb(255, 255, 255)":
            wrong.append("it is white where dark is asked for")
    wrong += check(page)
    wrong += [f"on the console: {text}" for text in page.complaints]
    wrong += [f"it asks for {address}" for address in page.requests if not address.startswith("file://")]
    return [f"{name}.html: {text}" for text in wrong], seconds
