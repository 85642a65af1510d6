"""The dashboard in a real browser, from a file: few jobs and thousands, keys, no script, a phone, hostile words."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dashboard_kit import board, record, with_jobs, written

from browsers import CHROMIUM
from donewhen.dashboard.data import EventRow, GateReasonRow, GateRow, UnreadableJob
from donewhen.jobs.board.views import dashboard_path
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from sentences import assert_sentences

if CHROMIUM is None:
    pytest.skip("LOUD: there is no Chromium, so the dashboard is NOT looked at in a browser.", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="LOUD: playwright is not there, so the dashboard is NOT looked at in a browser."
)
PATIENT = 120_000.0
"""Milliseconds after which something that has not happened won't: how busy the machine is decides nothing."""
playwright.expect.set_options(timeout=PATIENT)

Bench = Any
HOSTILE = (
    '</script><script>window.owned=1</script><img src=x onerror="window.owned=1"><!-- </title><svg onload=owned=1> '
    "<a href='javascript:owned=1'>here</a> {{7*7}} ${7*7} %%data%% \u202egnp.exe\u2066 \x1b[31mred"
)
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
_WITNESS = """
document.addEventListener("securitypolicyviolation", (event) => {
  (window.violations ??= []).push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


class Sight(NamedTuple):
    """The page in a window, and everything that should not happen there."""

    page: Any
    wrong: list[str]

    def nothing_wrong(self) -> None:
        assert self.page.evaluate("window.owned") is None
        assert [*self.wrong, *self.page.evaluate("window.violations ?? []")] == []

    def hash(self) -> str:
        return str(self.page.evaluate("location.hash"))

    def cards(self) -> list[str]:
        """The jobs that are shown once the page is drawn for its address."""
        self.page.locator(f"body[data-drawn={json.dumps(self.hash())}]").wait_for(state="attached")
        cards: list[str] = self.page.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.job)")
        return cards

    def fits(self) -> bool:
        """Whether nothing sticks out to the side."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Any]]:
    """``with look(path, "view=graph") as sight``: the page in a window of its own."""

    @contextmanager
    def open_window(path: Path, chosen: str = "", *, width: int = 1280, **options: Any) -> Iterator[Sight]:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        context.set_default_timeout(PATIENT)
        wrong: list[str] = []
        page = context.new_page()
        page.add_init_script(_WITNESS)
        page.on("dialog", lambda one: (wrong.append(f"dialog {one.message}"), one.dismiss()))
        page.on("pageerror", lambda one: wrong.append(f"error {one}"))
        page.on(
            "console", lambda one: wrong.append(f"console {one.text}") if one.type in ("error", "warning") else None
        )
        page.on(
            "request",
            lambda one: wrong.append(f"asked for {one.url}") if not one.url.startswith(path.as_uri()) else None,
        )
        page.goto(f"{path.as_uri()}{f'#{chosen}' if chosen else ''}")
        try:
            yield Sight(page, wrong)
        finally:
            context.close()

    yield open_window


# What stands there


def test_the_page_of_a_real_project_shows_its_jobs_gates_and_next_actions(bench: Bench, look: Any) -> None:
    done = bench.done("First")
    refused = bench.job("Second", depends_on=[done.id])
    bench.complete(refused)
    resting = bench.job("Third")
    set_job_aside(bench.workspace, resting.id, bench.workspace.ledger.read(done.id).entries[-1].by, reason="no network")
    with look(dashboard_path(bench.workspace, "html")) as sight:
        page = sight.page
        assert page.title() == "Demo"
        page.get_by_text("1 of 3 done").wait_for()
        assert_sentences(page.locator(".column h2").all_inner_texts())
        assert page.locator(f'[data-job="{resting.id}"] .waits').inner_text() == "no network"
        card = page.locator(f'[data-job="{refused.id}"]')
        marks = [text.split() for text in card.locator(".gate").all_inner_texts()]
        assert marks == [
            ["✓", "agreement", "open"],
            ["✓", "budget", "open"],
            ["✗", "dependency", "closed"],
            ["✗", "truth", "closed"],
            ["✗", "reward", "closed"],
        ]
        assert "1 of 3 iterations" in card.inner_text()
        assert_sentences(card.locator(".next").inner_text())
        card.get_by_role("link").click()
        panel = page.get_by_role("dialog")
        panel.get_by_text("AC-1 (The result is written down.) is not met:").first.wait_for()
        panel.get_by_text("criterion_failed").wait_for()
        panel.get_by_role("link", name=done.id).wait_for()
        playwright.expect(panel.locator("figure svg circle")).to_have_count(1)
        panel.get_by_text("refused", exact=True).first.wait_for()
        sight.nothing_wrong()


@pytest.mark.parametrize("count", [3, 60, 2000])
@pytest.mark.parametrize("view", ["board", "graph", "numbers", "ledger"])
def test_every_view_is_drawn_with_few_jobs_and_with_thousands(tmp_path: Path, look: Any, count: int, view: str) -> None:
    path = written(tmp_path, board(count))
    with look(path, f"view={view}") as sight:
        shown = {
            "board": ".card",
            "graph": ".graph a.node, .nothing",
            "numbers": "figure svg",
            "ledger": ".ledger tbody tr",
        }
        sight.page.locator(shown[view]).first.wait_for()
        assert sight.page.locator('nav [aria-current="page"]').inner_text().lower() == view
        assert sight.page.locator("#statuses button").first.inner_text().split() == ["all", f"{count:,}"]
        # However many there are, only so many elements are made.
        assert sight.page.locator("*").count() < 5000
        assert sight.fits()
        sight.nothing_wrong()


def test_a_column_shows_more_of_its_cards_when_asked(tmp_path: Path, look: Any) -> None:
    path = written(tmp_path, board(2000))
    with look(path, "status=done") as sight:
        assert len(sight.cards()) == 24
        more = sight.page.get_by_role("button", name=re.compile("^Show 48 more"))
        more.click()
        assert len(sight.cards()) == len(set(sight.cards())) == 72
        assert sight.page.evaluate("document.activeElement.closest('[data-job]').dataset.job") == sight.cards()[24]
        sight.nothing_wrong()


def test_no_jobs_yet_says_how_to_make_one(tmp_path: Path, look: Any) -> None:
    with look(written(tmp_path, with_jobs())) as sight:
        sight.page.get_by_role("heading", name="There are no jobs yet").wait_for()
        for view in "1234":
            sight.page.keyboard.press(view)
        sight.nothing_wrong()


def test_a_job_that_can_t_be_read_is_named(tmp_path: Path, look: Any) -> None:
    shown = with_jobs(record(1), unread=(UnreadableJob("jobs/WI-20260214-002-x/plan.md", "The plan file is missing."),))
    with look(written(tmp_path, shown)) as sight:
        assert "The plan file is missing." in sight.page.get_by_role("region", name="Problems").inner_text()


def test_what_was_edited_by_hand_is_marked(tmp_path: Path, look: Any) -> None:
    shown = with_jobs(record(1, status="done", tampered=("status", "completed_at")))
    with look(written(tmp_path, shown), "job=WI-20260214-001") as sight:
        assert sight.page.locator(".card .tag").inner_text() == "tampered"
        assert "status, completed_at" in sight.page.get_by_role("dialog").inner_text()


# Hostile words


def test_hostile_titles_reasons_names_and_ids_are_text_everywhere(tmp_path: Path, look: Any, bench: Bench) -> None:
    gates = (GateRow("truth", False, (GateReasonRow(HOSTILE, HOSTILE),)),)
    jobs = [
        record(1, title=HOSTILE, status="blocked", blocked_reason=HOSTILE, next_action=HOSTILE, gates=gates,
               wave=HOSTILE, workstream=HOSTILE, workstream_title=HOSTILE,
               depends_on=(HOSTILE, "__proto__", "constructor"),
               due_date=HOSTILE, next_command=HOSTILE, path=HOSTILE, agreement="voided"),
        record(2, title=LONG, workstream="WS-2", wave="W2"),
        record(3, title="משימה ראשונה: بداية العمل", id="__proto__"),
    ]  # fmt: skip
    events = (EventRow("2026-02-14T10:00:00Z", HOSTILE, 1, "decided", HOSTILE, "agent", HOSTILE),)
    shown = with_jobs(*jobs, title=HOSTILE, events=events, unread=(UnreadableJob(HOSTILE, HOSTILE),))
    for width in (1280, 360):
        with look(written(tmp_path, shown), width=width) as sight:
            for view in ("board", "graph", "numbers", "ledger"):
                sight.page.evaluate(f"location.hash = 'view={view}&job=WI-20260214-001'")
                sight.page.locator(f'nav [aria-current="page"]:has-text("{view.title()}")').wait_for()
                assert sight.fits(), f"{view} is wider than {width}"
                playwright.expect(
                    sight.page.locator("img, iframe, object, main script, #page a[href^='javascript']")
                ).to_have_count(0)
            assert (
                sight.page.get_by_role("dialog")
                .get_by_role("heading", level=2)
                .inner_text()
                .startswith("</script><script>")
            )
            sight.nothing_wrong()


@pytest.mark.parametrize(
    "chosen",
    [
        "job=<img src=x onerror=owned=1>",
        "view=__proto__&q=%3Cscript%3Eowned%3D1%3C/script%3E",
        "view=constructor&status=toString&gate=__proto__&job=__proto__",
        "q=" + "%F0%9F%92%A9" * 300,
        "%E0%A4%A&&&===",
    ],
)
def test_an_address_that_somebody_made_up_does_no_harm(tmp_path: Path, look: Any, chosen: str) -> None:
    with look(written(tmp_path, board(3)), chosen) as sight:
        sight.page.locator("#page").wait_for()
        sight.nothing_wrong()


# Choosing


def test_search_and_filters_choose_and_are_kept_in_the_address(tmp_path: Path, look: Any) -> None:
    path = written(tmp_path, board(60))
    shown = board(60).jobs.values()
    with look(path) as sight:
        page = sight.page
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "q"
        page.keyboard.type("coupons")
        assert sorted(sight.cards()) == sorted(job.id for job in shown if "coupons" in job.title)
        assert sight.hash() == "#q=coupons"
        page.get_by_label("any stakes").select_option("high")
        wanted = sorted(job.id for job in shown if "coupons" in job.title and job.stakes == "high")
        assert sorted(sight.cards()) == wanted
        assert page.locator("#found").inner_text().startswith(f"{len(wanted)} of 60 jobs")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Show all").click()
        assert sight.hash() == ""
        page.get_by_role("button", name=re.compile("blocked")).click()
        assert sorted(sight.cards()) == sorted(job.id for job in shown if job.status == "blocked")
        page.get_by_label("any gate").select_option("agreement")
        page.get_by_role("heading", name="No matching jobs").wait_for()
        page.get_by_label("any gate").select_option("truth")
        page.get_by_label("any workstream").select_option(label="Till")
        kept = sight.cards()
        address = sight.hash()
        sight.nothing_wrong()
    assert set(kept) == {job.id for job in shown if job.status == "blocked" and job.workstream_title == "Till"}
    with look(path, address[1:]) as sight:
        assert sight.cards() == kept
        assert sight.page.get_by_label("any workstream").input_value() == "WS-20260214-001"


def test_the_search_finds_reasons_and_next_actions_too(tmp_path: Path, look: Any) -> None:
    gates = (GateRow("truth", False, (GateReasonRow("criterion_stale", "AC-7 was shown for something else."),)),)
    jobs = (
        record(1, gates=gates, status="in_progress"),
        record(2, next_action="Log execution evidence: none"),
        record(3),
    )
    path = written(tmp_path, with_jobs(*jobs))
    for sought, found in (("ac-7 SHOWN", [1]), ("criterion_stale", [1]), ("execution evidence", [2]), ("214-003", [3])):
        with look(path, f"q={sought.replace(' ', '+')}") as sight:
            assert sight.cards() == [f"WI-20260214-{item:03d}" for item in found]


def test_keys_change_the_view_and_escape_goes_back_to_the_card(tmp_path: Path, look: Any) -> None:
    with look(written(tmp_path, board(60))) as sight:
        page = sight.page
        page.keyboard.press("2")
        page.locator(".graph").wait_for()
        assert sight.hash() == "#view=graph"
        page.keyboard.press("1")
        card = page.locator(".card-title").nth(3)
        card.focus()
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for()
        assert page.evaluate("document.activeElement.id") == "details-title"
        page.keyboard.press("Escape")
        playwright.expect(page.get_by_role("dialog")).to_have_count(0)
        name = sight.cards()[3]
        assert page.evaluate("document.activeElement.closest('[data-job]').dataset.job") == name
        page.go_back()
        page.get_by_role("dialog").wait_for()
        sight.nothing_wrong()


def test_everything_can_be_reached_with_the_tab_key_and_shows_where_one_is(tmp_path: Path, look: Any) -> None:
    with look(written(tmp_path, board(3))) as sight:
        reached = []
        for _ in range(30):
            sight.page.keyboard.press("Tab")
            reached.append(
                sight.page.evaluate(
                    "(({ id, className, textContent }) => id || className || textContent)(document.activeElement)"
                )
            )
        for wanted in ("skip", "Board", "theme", "q", "by-stakes", "card-title clamp"):
            assert wanted in reached
        sight.page.locator("#theme").focus()
        sight.page.keyboard.press("Tab")
        assert sight.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_command_can_be_copied(tmp_path: Path, look: Any) -> None:
    with look(
        written(tmp_path, with_jobs(record(1))),
        "job=WI-20260214-001",
        permissions=["clipboard-read", "clipboard-write"],
    ) as sight:
        sight.page.get_by_role("button", name="Copy").click()
        sight.page.get_by_role("button", name="Copied").wait_for()
        assert sight.page.evaluate("navigator.clipboard.readText()") == "donewhen start WI-20260214-001"


# The graph


def test_the_graph_says_what_it_leaves_out_and_shows_the_surroundings_of_a_job(tmp_path: Path, look: Any) -> None:
    with look(written(tmp_path, board(2000)), "view=graph") as sight:
        note = sight.page.locator(".note").inner_text()
        assert "80" in note
        assert_sentences(note)
        playwright.expect(sight.page.locator("a.node")).to_have_count(80)
        sight.nothing_wrong()
    jobs = [
        record(number, depends_on=(f"WI-20260214-{number - 1:03d}",) if number > 1 else ()) for number in range(1, 6)
    ]
    with look(
        written(tmp_path, with_jobs(*jobs, record(9), record(8, depends_on=("WI-20260214-009",)))),
        "view=graph&job=WI-20260214-003",
    ) as sight:
        drawn = {element.get_attribute("data-job") for element in sight.page.locator("a.node").all()}
        assert drawn == {job.id for job in jobs}
        places = {
            element.get_attribute("data-job"): element.locator("rect").get_attribute("x")
            for element in sight.page.locator("a.node").all()
        }
        across = [float(places[job.id] or 0) for job in jobs]
        assert across == sorted(across)
        assert len(set(across)) == 5
        sight.nothing_wrong()


def test_circles_and_missing_dependencies_can_be_seen(tmp_path: Path, look: Any) -> None:
    one, two, three = (f"WI-20260214-{number:03d}" for number in (1, 2, 3))
    jobs = (
        record(1, depends_on=(two,)),
        record(2, depends_on=(one,)),
        record(3, depends_on=(two, "WI-20990101-001", three)),
        record(4, depends_on=(three,)),
    )
    with look(written(tmp_path, with_jobs(*jobs)), "view=graph") as sight:
        notes = sight.page.locator(".note.serious").all_inner_texts()
        assert str(one) in "\n".join(notes)
        assert str(two) in "\n".join(notes)
        assert str(three) in "\n".join(notes)
        assert_sentences(notes)
        playwright.expect(sight.page.locator(".node.lost")).to_have_count(1)
        assert sight.page.locator(".arrow.back").count() >= 2
        sight.nothing_wrong()


def test_everything_stands_to_the_right_of_what_it_waits_for_and_long_chains_need_no_recursion(
    tmp_path: Path, look: Any
) -> None:
    layers = "(above) => Object.fromEntries(layersOf(new Map(Object.entries(above))))"
    with look(written(tmp_path, board(3))) as sight:
        found = sight.page.evaluate(layers, {"a": [], "b": ["a"], "c": ["a", "b"], "d": []})
        assert found == {"a": 0, "b": 1, "c": 2, "d": 0}
        circle = sight.page.evaluate(layers, {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})
        assert set(circle) == {"a", "b", "c", "d"}
        chain = {f"j{number}": [f"j{number + 1}"] for number in range(5000)} | {"j5000": []}
        assert sight.page.evaluate(layers, chain)["j0"] == 5000


def test_no_two_jobs_overlap_and_lines_that_cross_are_untangled(tmp_path: Path, look: Any) -> None:
    names = [f"WI-20260214-{number:03d}" for number in range(1, 10)]
    fan = [record(1), *(record(number, depends_on=(names[0],)) for number in range(2, 9))]
    fan.append(record(9, depends_on=tuple(names[1:8])))
    boxes = """nodes => nodes.map(node => { const rect = node.querySelector("rect");
        return [node.dataset.job, ...["x", "y", "width", "height"].map(name => Number(rect.getAttribute(name)))] })"""
    with look(written(tmp_path, with_jobs(*fan)), "view=graph") as sight:
        drawn = sight.page.locator("a.node").evaluate_all(boxes)
        wide, tall = (float(sight.page.locator(".graph svg").get_attribute(name)) for name in ("width", "height"))
    assert len(drawn) == 9
    for at, (_, x, y, width, height) in enumerate(drawn):
        assert 0 <= x <= wide - width
        assert 0 <= y <= tall - height
        assert all(x != left or abs(y - top) >= height for _, left, top, _, _ in drawn[at + 1 :])
    crossed = (record(1), record(2), record(3, depends_on=(names[1],)), record(4, depends_on=(names[0],)))
    with look(written(tmp_path, with_jobs(*crossed)), "view=graph") as sight:
        place = {name: y for name, _, y, _, _ in sight.page.locator("a.node").evaluate_all(boxes)}
    assert (place[names[0]] < place[names[1]]) == (place[names[3]] < place[names[2]])


# Looks


def test_dark_and_light_follow_the_system_until_somebody_chooses(tmp_path: Path, look: Any) -> None:
    path = written(tmp_path, board(3))
    colour = "getComputedStyle(document.body).backgroundColor"
    with look(path, color_scheme="light") as sight:
        assert sight.page.evaluate(colour) == "rgb(255, 255, 255)"
        sight.page.get_by_role("button", name="Use dark colours").click()
        assert sight.page.evaluate(colour) == "rgb(18, 22, 27)"
        sight.page.reload()
        assert sight.page.evaluate(colour) == "rgb(18, 22, 27)"
        sight.page.get_by_role("button", name="Use light colours").click()
        assert sight.page.evaluate(colour) == "rgb(255, 255, 255)"
        sight.nothing_wrong()
    with look(path, color_scheme="dark") as sight:
        assert sight.page.evaluate(colour) == "rgb(18, 22, 27)"


@pytest.mark.parametrize("count", [3, 60])
@pytest.mark.parametrize("view", ["board", "graph", "numbers", "ledger"])
def test_on_a_phone_nothing_sticks_out(tmp_path: Path, look: Any, count: int, view: str) -> None:
    with look(written(tmp_path, board(count)), f"view={view}", width=360) as sight:
        assert sight.fits()
        sight.page.evaluate(f"location.hash = 'view={view}&job=WI-20260214-002'")
        sight.page.get_by_role("dialog").wait_for()
        assert sight.fits()
        sight.nothing_wrong()


def test_without_a_script_there_is_a_plain_table(tmp_path: Path, look: Any) -> None:
    path = written(tmp_path, board(2000))
    with look(path, java_script_enabled=False) as sight:
        sight.page.get_by_role("heading", name="Webshop").wait_for()
        assert sight.page.locator("noscript a").count() == 0
        playwright.expect(sight.page.locator("tbody tr")).to_have_count(200)
        assert_sentences(sight.page.locator("noscript p").last.inner_text())
        assert sight.wrong == []


def test_on_paper_there_are_no_controls(tmp_path: Path, look: Any) -> None:
    with look(written(tmp_path, board(3))) as sight:
        sight.page.emulate_media(media="print")
        assert not sight.page.locator("#q").is_visible()
        sight.page.locator(".card").first.wait_for()
