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
    return holds(page, "document.querySelector('main > *').id === 'verdict'",
                 f"document.getElementById('verdict').innerText.startsWith('{word}')")


def choose(page: Browser, control: str, value: str):
    page.ask(f"(() => {{ const e = document.getElementById('{control}'); e.value = '{value}';"
             " e.dispatchEvent(new Event('change')); })()")


def text_of(page: Browser, place: str) -> str:
    return page.ask(f"document.getElementById('{place}').innerText")


def time_line(page: Browser) -> list[str]:
    """Each mark can be reached by the arrow keys, and is told in words."""
    wrong = []
    page.ask("document.getElementById('timeline-canvas').focus()")
    page.press("End", 35)
    page.press("Home", 36)
    told = []
    for _ in range(60):
        now = text_of(page, "timeline-told")
        if told and now == told[-1]:
            break
        told.append(now)
        page.press("ArrowRight", 39)
    for wanted in ("rank 2, step 3: fault: kill rank 2 at step 3, backward, call 1", "acknowledged 2-1-1",
                   "attempt 2, rank", "restored 4-3-1"):
        if not any(wanted in one for one in told):
            wrong.append(f"no mark of the time line says: {wanted}")
    page.press("ArrowLeft", 37)
    if len(told) < 2 or text_of(page, "timeline-told") != told[-2]:
        wrong.append("the left arrow does not lead back in the time line")
    drawn = ("(() => { const c = document.getElementById('timeline-canvas'); const p = c.getContext('2d')"
             ".getImageData(0, 0, c.width, c.height).data; const s = new Set(); for (let i = 0; i < p.length; i += 4)"
             " s.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]); return data.phases.filter(name =>"
             " s.has(parseInt(hues[name].slice(1), 16))); })()")
    phases = page.ask(drawn)
    if missing := {"find", "rendezvous", "save", "commit", "validate", "restore"} - set(phases):
        wrong.append(f"the time line lacks the colours of {sorted(missing)}")
    image = "document.getElementById('timeline-canvas').toDataURL()"
    before = page.ask(image)
    for _ in range(4):
        page.press("+", 187, "+")
    zoomed = page.ask(image)
    page.press("0", 48, "0")
    if page.ask(image) != before or zoomed == before:
        wrong.append("plus and 0 do not zoom the time line and back")
    choose(page, "timeline-attempt", "3")
    page.ask("document.getElementById('timeline-canvas').focus()")
    page.press("Home", 36)
    if "attempt 3" not in text_of(page, "timeline-told"):
        wrong.append("the first mark of attempt 3 is not of attempt 3")
    return wrong


def drill(page: Browser) -> list[str]:
    wrong = verdict(page, "PASS")
    wrong += says(page, "Properties: 15 pass", "3 of 3 planned faults fired, 4 attempts", "useful tokens a second",
                  "are equal after every step", "resume_equals_golden", "acknowledged step 4 (4-3-1)",
                  "Messages: from the rank", "dp all_reduce")
    choose(page, "properties-filter", "fail")
    wrong += holds(page, "!document.body.innerText.includes('resume_equals_golden')")
    choose(page, "properties-filter", "all")
    choose(page, "exchange-figure", "calls")
    wrong += holds(page, "!document.getElementById('exchange').innerText.includes('KiB')")
    choose(page, "events-kind", "fault_fired")
    wrong += holds(page, "document.getElementById('events-count').innerText.startsWith('3 events')")
    choose(page, "events-rank", "0")
    wrong += holds(page, "document.getElementById('events-count').innerText.startsWith('1 event')")
    choose(page, "events-rank", "all")
    # By keyboard alone: into the field, and a text that one fault has.
    page.ask("document.getElementById('events-text').focus()")
    page.type("commit, sync")
    wrong += holds(page, "document.getElementById('events-count').innerText.startsWith('1 event')")
    return wrong + time_line(page)


def mutant(page: Browser) -> list[str]:
    wrong = verdict(page, "FAIL") + says(page, "protocol_unsynced_files", "discovery fails although")
    # What failed stands above what passed.
    wrong += holds(page, "document.querySelector('#run-0 tbody tr td b.fail') !== null",
                   "document.body.innerText.indexOf('partial_never_discoverable') < "
                   "document.body.innerText.indexOf('one_provenance')")
    return wrong


def difference(page: Browser) -> list[str]:
    wrong = verdict(page, "FAIL")
    wrong += says(page, "random_state_of_rank_zero", "differ; the first is embed.position.weight",
                  "embed.position.weight after step 3", "sampler: 3 tensors")
    choose(page, "tensors-filter", "what differs")
    wrong += holds(page, "!document.getElementById('tensors-tree').innerText.includes('sampler: 3 tensors')")
    return wrong


def crash(page: Browser) -> list[str]:
    wrong = verdict(page, "FAIL") + says(page, "4-1-1 was acknowledged, and 2-1-1 was restored", "shards/4-1-1/model-2",
                                         "latest is there (by rank 0's rename")
    wrong += holds(page, "document.querySelectorAll('#disk-picture .chip.lost').length === 1",
                   "document.querySelector('#disk-picture .chip.lost').title.includes('write of 5 bytes')")
    choose(page, "disk-filter", "what lost something")
    wrong += holds(page, "document.querySelectorAll('#disk-picture tbody tr').length === 1",
                   "document.getElementById('disk-picture').innerText.includes('tmp/4-1-1')")
    return wrong


def exploration(page: Browser) -> list[str]:
    wrong = says(page, "distinct histories", "Places reached", "kill_node", "rendezvous", "Situations:")
    all_of_them = page.ask("document.querySelectorAll('#coverage tbody tr').length")
    choose(page, "situations-filter", "never")
    if not 0 < page.ask("document.querySelectorAll('#coverage tbody tr').length") < all_of_them:
        wrong.append("the filter of situations leaves out nothing, or all")
    return wrong


def mutants(page: Browser) -> list[str]:
    wrong = verdict(page, "PASS") + says(page, "Mutants: 2 killed, 0 survived", "sampler_by_rank",
                                         "fault_that_never_fires")
    page.ask("document.getElementById('mutants-text').focus()")
    page.type("latest")
    wrong += holds(page, "!document.getElementById('mutants').innerText.includes('sampler_by_rank')")
    page.ask("document.getElementById('mutants-text').value = ''")
    choose(page, "mutants-filter", "survived")
    wrong += holds(page, "!document.getElementById('mutants').innerText.includes('protocol_latest_file')")
    return wrong


def several(page: Browser) -> list[str]:
    wrong = verdict(page, "PASS") + says(page, "2 runs", "scenarios/rank/hang.yaml")
    choose(page, "runs-filter", "not as expected")
    return wrong + holds(page, "document.querySelectorAll('#runs tbody tr').length === 0")


def long(page: Browser) -> list[str]:
    wrong = verdict(page, "PASS") + holds(page, "data.total >= 50000")
    before = page.ask("document.querySelectorAll('#events tbody tr').length")
    page.ask("document.getElementById('events-more').focus()")
    page.press("Enter", 13, "\r")
    after = page.ask("document.querySelectorAll('#events tbody tr').length")
    if (before, after) != (200, 400):
        wrong.append(f"{before} events are shown at first, and {after} when Enter is pressed on `more`")
    return wrong


def unreachable(page: Browser) -> list[str]:
    """Every control and every place that scrolls comes up in the order of the Tab key, and has a name."""
    wanted = page.ask("[...document.querySelectorAll('a, select, input, button:not([hidden]), summary, [tabindex]')]"
                      ".filter(e => e.matches('summary') || !e.closest('details:not([open])')).length")
    page.ask("document.activeElement.blur()")
    steps = min(wanted, 60)
    reached = []
    for _ in range(steps):
        page.press("Tab", 9)
        reached.append(page.ask("(e => [...document.querySelectorAll('*')].indexOf(e))(document.activeElement)"))
    wrong = [] if len(set(reached)) == steps and reached == sorted(reached) else [
        f"the Tab key reaches {len(set(reached))} of {steps} places, or not in their order"]
    nameless = page.ask("[...document.querySelectorAll('select, input, canvas')].filter(e => "
                        "!e.getAttribute('aria-label') && !e.closest('label')).length")
    return wrong + ([f"{nameless} controls have no name"] if nameless else [])


ALL: dict[str, Callable[[Browser], list[str]]] = {
    "drill": drill, "mutant": mutant, "difference": difference, "crash": crash, "exploration": exploration,
    "mutants": mutants, "several": several, "long": long}


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
    wrong += unreachable(page)
    wrong += check(page)
    wrong += [f"on the console: {text}" for text in page.complaints]
    wrong += [f"it asks for {address}" for address in page.requests if not address.startswith("file://")]
    return [f"{name}.html: {text}" for text in wrong], seconds
