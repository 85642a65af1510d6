"""The page in a real browser: walking around, reviewing by keys, following what happens, running nobody's code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from web_kit import BOT, Server, agree_to, eventually, path_of, shop

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from changes_kit import outside

from browsers import CHROMIUM
from donewhen.demo.example_mission import make_mission
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.setting_aside import record_dispute, set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.queue import review_queue
from sentences import assert_sentences

if CHROMIUM is None:
    pytest.skip("LOUD: there is no Chromium, so the page is NOT looked at in a browser.", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="LOUD: playwright is not there, so the page is NOT looked at in a browser."
)
PATIENT = 120_000.0
"""Milliseconds after which something that has not happened won't: how busy the machine is decides nothing."""
playwright.expect.set_options(timeout=PATIENT)

Serve = Callable[..., Server]
Donewhen = Callable[..., subprocess.CompletedProcess[str]]

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</title><svg onload=alert(1)> <a href='javascript:alert(2)'>here</a> \u202egnp.exe\u2066 {{ 7 * 7 }} ${7*7}"
)
_WITNESS = """
document.addEventListener("securitypolicyviolation", (event) => {
  (window.violations ??= []).push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""


class Sight(NamedTuple):
    """A page in the browser, and everything that should not happen there."""

    page: Any
    wrong: list[str]

    def nothing_wrong(self) -> None:
        found = self.page.evaluate("window.violations ?? []")
        assert [*self.wrong, *found] == []


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Any]]:
    """``with look(width=360) as sight``: a browser window of its own."""

    @contextmanager
    def open_window(*, width: int = 1280, expected: str = "", **options: Any) -> Iterator[Sight]:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        context.set_default_timeout(PATIENT)
        wrong: list[str] = []
        page = context.new_page()
        page.add_init_script(_WITNESS)
        page.on("dialog", lambda one: (wrong.append(f"dialog {one.message}"), one.dismiss()))
        page.on("pageerror", lambda one: wrong.append(f"error {one}"))
        page.on(
            "console",
            lambda one: (
                wrong.append(f"console {one.text}")
                if one.type in ("error", "warning") and not (expected and expected in one.text)
                else None
            ),
        )
        try:
            yield Sight(page, wrong)
        finally:
            context.close()

    yield open_window


def refused(workspace: Workspace, job: Job) -> None:
    """An agent begins, is refused, and disputes it."""
    start_job(workspace, job.id, BOT)
    (workspace.root / "out.txt").write_text("hello\n", encoding="utf-8")
    complete(workspace, job.id, BOT)
    record_dispute(workspace, job.id, BOT, "The check itself is broken.")


def learned(mission: Path, status: int = 0) -> None:
    """In a process of its own: the driver of the browser has the loop of this one."""
    argv = [sys.executable, "-m", "donewhen", "learn", str(mission), "--quiet"]
    ended = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    assert ended.returncode == status


def until(page: Any, condition: str) -> None:
    """Wait for something to be so in the page. (The driver's own way evaluates strings there, which is forbidden.)"""
    eventually(lambda: page.evaluate(condition), condition)


def words_of_people(workspace: Workspace, job: Job) -> list[tuple[str, str]]:
    entries = workspace.ledger.read(job.id).entries
    return [(entry.by.name, entry.data["verdict"]) for entry in entries if entry.type == "overridden"]


def signed_in(sight: Sight, server: Server, name: str) -> None:
    """Follow the link from the terminal, and press the button."""
    sight.page.goto(f"{server.url}{server.link(name)}")
    sight.page.get_by_role("button", name=f"Continue as {name}").click()
    sight.page.wait_for_url(re.compile(r"/as/[\w-]+/review"))


def test_people_find_their_way(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, (first,) = shop(tmp_path, "Greet")
    add_job(workspace, "Say goodbye", depends_on=[first.id], criteria=["It says goodbye"])
    make_mission(tmp_path / "missions" / "tone", 60)
    server = serve(tmp_path)
    with look() as sight:
        page = sight.page
        pages = page.get_by_role("navigation", name="Pages")
        page.goto(server.url)
        page.get_by_role("link", name="Greet", exact=True).click()
        panel = page.get_by_role("dialog")
        assert panel.get_by_role("heading", level=2).inner_text() == "Greet"
        panel.get_by_role("link", name=re.compile("^Full page")).click()
        playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Greet")
        assert path_of(page.url) == f"/jobs/{first.id}"
        pages.get_by_role("link", name="Graph").click()
        page.locator("svg .node").filter(has_text="Say goodbye").click()
        panel.get_by_role("link", name=re.compile("^Full page")).click()
        playwright.expect(page.get_by_role("heading", level=1)).to_have_text("Say goodbye")
        page.get_by_role("link", name=re.compile("Greet")).first.click()
        pages.get_by_role("link", name="Missions").click()
        page.get_by_role("link", name="tone").click()
        playwright.expect(page.get_by_role("heading", level=1)).to_have_text("agent-reports")
        pages.get_by_role("link", name="Review").click()
        playwright.expect(page).to_have_url(re.compile("/review$"))
        page.get_by_role("heading", level=1).wait_for()
        page.get_by_role("link", name="donewhen").click()
        page.get_by_role("searchbox").fill("goodbye")
        page.get_by_text("1 of 2 jobs").wait_for()
        assert page.locator(".card").count() == 1
        for room in ("Numbers", "Ledger", "Board"):
            pages.get_by_role("link", name=room).click()
            playwright.expect(pages.locator("[aria-current=page]")).to_have_text(room)
        sight.nothing_wrong()


def test_a_queue_is_reviewed_with_keys_alone(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, jobs = shop(tmp_path, "One", "Two", "Three")
    (tmp_path / "check.sh").write_text("exit 1\n", encoding="utf-8")
    for job in jobs:
        refused(workspace, job)
    ids = [one.id for one in review_queue(workspace)]
    by_item = {one.id: next(job for job in jobs if job.id == one.job) for one in review_queue(workspace)}
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look() as sight:
        page = sight.page
        signed_in(sight, server, "ada")
        chosen = page.locator("[data-item].chosen")
        assert chosen.get_attribute("data-item") == ids[0]
        until(page, "performance.now() > 500")
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert chosen.get_attribute("data-item") == ids[2]
        page.keyboard.press("k")
        assert chosen.get_attribute("data-item") == ids[1]
        assert page.locator("[data-help]").is_hidden()
        page.keyboard.press("?")
        page.locator("[data-help]").wait_for()
        page.keyboard.press("p")
        page.wait_for_selector("[role=status]")
        assert_sentences(page.inner_text("[role=status]"))
        assert words_of_people(workspace, by_item[ids[1]]) == [("ada", "pass")]
        playwright.expect(page.locator("[data-item]")).to_have_count(2)
        until(page, "performance.now() > 500")
        page.keyboard.press("r")
        page.keyboard.type("Not enough, f and p are only letters here")
        page.keyboard.press("Escape")
        page.keyboard.press("f")
        playwright.expect(page.locator("[data-item]")).to_have_count(1)
        assert words_of_people(workspace, by_item[ids[0]]) == [("ada", "fail")]
        until(page, "performance.now() > 500")
        page.keyboard.press("o")
        page.wait_for_url(re.compile(rf"/review/{ids[2]}$"))
        assert_sentences(page.inner_text("main"))
        until(page, "performance.now() > 500")
        page.keyboard.press("p")
        page.wait_for_selector("text=Nothing to review")
        assert words_of_people(workspace, by_item[ids[2]]) == [("ada", "pass")]
        sight.nothing_wrong()


def test_changed_files_are_accepted_with_a_key_of_their_own(tmp_path: Path, serve: Serve, look: Any) -> None:
    held = outside(tmp_path / "shop")
    server = serve(held.root, "--reviewer", "ada", person=True)
    with look() as sight:
        page = sight.page
        signed_in(sight, server, "ada")
        playwright.expect(page.locator(".added", has_text="+3")).to_be_visible()
        assert_sentences(page.inner_text("main"))
        until(page, "performance.now() > 500")
        page.keyboard.press("p")
        page.keyboard.press("f")
        page.keyboard.press("a")
        page.wait_for_selector("text=Nothing to review")
        assert_sentences(page.inner_text("[role=status]"))
        assert held.decisions == [("accept_changes", "", "person")]
        sight.nothing_wrong()
    assert held.complete().done


def test_buttons_work_without_javascript(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, (job,) = shop(tmp_path, "One")
    (tmp_path / "check.sh").write_text("exit 1\n", encoding="utf-8")
    refused(workspace, job)
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look(java_script_enabled=False) as sight:
        signed_in(sight, server, "ada")
        sight.page.get_by_placeholder("Why (optional)").fill("It is fine.")
        sight.page.get_by_role("button", name="Pass").click()
        sight.page.wait_for_selector("text=Nothing to review")
    assert words_of_people(workspace, job) == [("ada", "pass")]


def test_everything_can_be_read_without_javascript(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    make_mission(tmp_path / "missions" / "tone", 60)
    start_job(workspace, job.id, BOT)
    complete(workspace, job.id, BOT)
    server = serve(tmp_path)
    with look(java_script_enabled=False) as sight:
        page = sight.page
        page.goto(server.url)
        assert "Greet" in page.inner_text("main")
        page.get_by_role("link", name=job.id, exact=True).click()
        assert "criterion_failed" in page.inner_text("main")
        page.locator("details.run summary").click()
        assert "No output." in page.inner_text("main")
        for room in ("Review", "Missions", "Board"):
            page.get_by_role("navigation", name="Pages").get_by_role("link", name=room).click()
            page.get_by_role("heading", level=1).wait_for()
        page.get_by_role("link", name="Missions").click()
        page.get_by_role("heading", level=1, name="Missions").wait_for()


def test_what_another_process_does_is_seen_without_reloading(
    tmp_path: Path, serve: Serve, look: Any, donewhen: Donewhen
) -> None:
    workspace, (job, other) = shop(tmp_path, "Greet", "Other")
    start_job(workspace, job.id, BOT)
    (tmp_path / "out.txt").write_text("hello\n", encoding="utf-8")
    server = serve(tmp_path)
    with look() as sight, look() as second:
        sight.page.goto(server.url)
        second.page.goto(f"{server.url}/jobs/{job.id}")
        for one in (sight, second):
            one.page.wait_for_selector("[data-live]:not([hidden])")
            one.page.evaluate("window.notReloaded = true")
        done = donewhen(["complete", job.id], tmp_path)
        assert done.returncode == 0, done.stdout
        sight.page.wait_for_selector(".column.s-done >> text=Greet")
        second.page.wait_for_selector("text=receipt: sha256:")
        donewhen(["block", other.id, "--reason", "The oven is cold"], tmp_path)
        sight.page.wait_for_selector("text=The oven is cold")
        for one in (sight, second):
            assert one.page.evaluate("window.notReloaded")
            one.nothing_wrong()


def test_a_change_leaves_the_board_as_somebody_has_it(
    tmp_path: Path, serve: Serve, look: Any, donewhen: Donewhen
) -> None:
    _, jobs = shop(tmp_path, *(f"Job {number}" for number in range(40)))
    server = serve(tmp_path)
    with look() as sight:
        page = sight.page
        page.set_viewport_size({"width": 1280, "height": 300})
        page.goto(f"{server.url}/#q=job&job={jobs[3].id}")
        page.wait_for_selector("[data-live]:not([hidden])")
        page.get_by_role("button", name=re.compile("^Show .* more")).click()
        shown = page.locator(".card").count()
        page.locator("#q").focus()
        page.evaluate("(document.getElementById('details').scrollTop = 60, scrollTo(0, 500))")
        assert donewhen(["block", jobs[3].id, "--reason", "The oven is cold"], tmp_path).returncode == 0
        page.get_by_role("dialog").get_by_text("The oven is cold").first.wait_for()
        assert page.evaluate("location.hash") == f"#q=job&job={jobs[3].id}"
        assert page.evaluate("document.activeElement.id") == "q"
        assert page.evaluate("[document.getElementById('details').scrollTop, scrollY]") == [60, 500]
        assert page.locator(".column.s-planned .card").count() == shown - 1
        page.locator(f'[data-job="{jobs[5].id}"] .card-title').focus()
        assert donewhen(["block", jobs[6].id, "--reason", "No flour"], tmp_path).returncode == 0
        page.locator(".card").get_by_text("No flour").wait_for()
        assert page.evaluate("document.activeElement.closest('[data-job]').dataset.job") == jobs[5].id
        sight.nothing_wrong()


def test_a_board_that_cant_be_read_for_a_moment_says_so_and_comes_back(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, _ = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    plan = workspace.project_file.read_bytes()
    with look(expected="500") as sight:
        sight.page.goto(server.url)
        sight.page.wait_for_selector("[data-live]:not([hidden])")
        workspace.project_file.write_bytes(b"---\nstatus: [\n---\n")
        sight.page.wait_for_selector("#notice:not([hidden])")
        assert_sentences(sight.page.inner_text("#notice"))
        assert sight.page.locator(".card").count() == 1
        workspace.project_file.write_bytes(plan)
        sight.page.wait_for_selector("#notice", state="hidden")
        sight.nothing_wrong()


def test_a_chosen_theme_is_kept_on_every_page(tmp_path: Path, serve: Serve, look: Any) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    colour = "getComputedStyle(document.body).backgroundColor"
    with look(color_scheme="light") as sight:
        sight.page.goto(server.url)
        assert sight.page.evaluate(colour) == "rgb(255, 255, 255)"
        sight.page.get_by_role("button", name="Use dark colours").click()
        for path in (f"/jobs/{job.id}", "/review", "/missions", "/"):
            sight.page.goto(server.url + path)
            sight.page.get_by_role("button", name="Use light colours").wait_for()
            assert sight.page.evaluate(colour) == "rgb(18, 22, 27)", path
        sight.nothing_wrong()


def test_the_first_job_appears_where_there_were_none(
    tmp_path: Path, serve: Serve, look: Any, donewhen: Donewhen
) -> None:
    server = serve(tmp_path)
    with look() as sight:
        sight.page.goto(server.url)
        sight.page.wait_for_selector("[data-live]:not([hidden])")
        assert donewhen(["init", "--title", "Shop"], tmp_path).returncode == 0
        sight.page.get_by_text("There are no jobs yet").wait_for()
        assert donewhen(["add", "Greet", "--criterion", "It says hello"], tmp_path).returncode == 0
        sight.page.locator(".card").get_by_text("Greet").wait_for()
        sight.nothing_wrong()


def test_a_page_that_cant_be_shown_for_a_moment_says_so_and_comes_back(tmp_path: Path, serve: Serve, look: Any) -> None:
    _, (job,) = shop(tmp_path, "Greet")
    server = serve(tmp_path)
    plan = job.path.read_bytes()
    with look(expected="500") as sight:
        sight.page.goto(f"{server.url}/jobs/{job.id}")
        sight.page.wait_for_selector("[data-live]:not([hidden])")
        job.path.write_bytes(b"---\nstatus: [\n---\n")
        sight.page.wait_for_selector("text=Repair the file")
        job.path.write_bytes(plan)
        sight.page.wait_for_selector("#requirements")
        sight.nothing_wrong()


def test_a_run_is_followed_while_it_is_at_work(tmp_path: Path, serve: Serve, look: Any) -> None:
    folder = tmp_path / "missions" / "tone"
    make_mission(folder, 160)
    learned(folder)
    (run,) = (folder / "runs").glob("2*")
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    (run / "report.json").unlink()
    (run / "events.jsonl").write_bytes(b"".join(lines[:4]))
    server = serve(tmp_path)
    with look() as sight:
        sight.page.goto(f"{server.url}/missions/tone/runs/{run.name}")
        sight.page.wait_for_selector("[data-live]:not([hidden])")
        sight.page.wait_for_selector("text=running")
        with (run / "events.jsonl").open("ab") as file:
            for line in lines[4:]:
                file.write(line)
                file.flush()
        sight.page.wait_for_selector(".status >> text=finished")
        calls = int(json.loads(lines[-1])["spent"]["calls"])
        assert f"{calls:,}" in sight.page.inner_text("main")
        sight.nothing_wrong()


def test_what_somebody_has_opened_or_written_survives_a_change(
    tmp_path: Path, serve: Serve, look: Any, donewhen: Donewhen
) -> None:
    workspace, (job, other) = shop(tmp_path, "One", "Two")
    (tmp_path / "check.sh").write_text("echo a long story; exit 1\n", encoding="utf-8")
    refused(workspace, job)
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look() as sight, look() as second:
        signed_in(sight, server, "ada")
        sight.page.get_by_placeholder("Why (optional)").fill("I am still thinking")
        second.page.goto(f"{server.url}/jobs/{job.id}")
        second.page.locator("details.run summary").first.click()
        assert "a long story" in second.page.inner_text("main")
        refused(workspace, other)
        playwright.expect(sight.page.locator("[data-item]")).to_have_count(2)
        assert sight.page.get_by_placeholder("Why (optional)").first.input_value() == "I am still thinking"
        assert sight.page.evaluate("document.activeElement.name") == "reason"
        donewhen(["run", job.id, "--again"], tmp_path)
        playwright.expect(second.page.locator("details.run")).to_have_count(2)
        assert "a long story" in second.page.inner_text("main")
        playwright.expect(second.page.locator("details.run[open]")).to_have_count(1)
        sight.nothing_wrong()
        second.nothing_wrong()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_question_is_answered_where_it_is_shown(tmp_path: Path, serve: Serve, look: Any, width: int) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    start_job(workspace, job.id, BOT)
    set_job_aside(workspace, job.id, BOT, question="Comma or semicolon? " * 12)
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look(width=width) as sight:
        signed_in(sight, server, "ada")
        until(sight.page, "performance.now() > 500")
        assert sight.page.evaluate("document.documentElement.scrollWidth") == width
        # The key leads to the field, because there is nothing to send yet.
        sight.page.keyboard.press("a")
        assert sight.page.evaluate("document.activeElement.tagName") == "TEXTAREA"
        sight.page.keyboard.type("Comma, and a space.")
        field = sight.page.get_by_label("Your answer, for the agent").bounding_box()
        assert field["width"] > 0.8 * min(width, 1000) - 80
        sight.page.get_by_role("button", name="Answer").click()
        sight.page.wait_for_selector("text=Nothing to review")
        entry = workspace.ledger.read(job.id).entries[-1]
        assert (entry.data["decision"], entry.data["reason"]) == ("answer", "Comma, and a space.")
        sight.nothing_wrong()


def test_an_answer_to_a_question_that_is_gone_stays_on_the_page(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    start_job(workspace, job.id, BOT)
    set_job_aside(workspace, job.id, BOT, question="Comma or semicolon?")
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look() as sight:
        signed_in(sight, server, "ada")
        sight.page.get_by_label("Your answer, for the agent").fill("Comma, after much thought.")
        start_job(workspace, job.id, BOT)
        playwright.expect(sight.page.locator("[data-item]")).to_have_count(0)
        playwright.expect(sight.page.locator("#page .notice")).to_contain_text("You wrote: Comma, after much thought.")
        sight.nothing_wrong()


def test_a_key_never_meets_another_item_than_the_one_that_was_chosen(
    tmp_path: Path, serve: Serve, look: Any, donewhen: Donewhen
) -> None:
    workspace, jobs = shop(tmp_path, "One", "Two")
    (tmp_path / "check.sh").write_text("exit 1\n", encoding="utf-8")
    for job in jobs:
        refused(workspace, job)
    first = next(job for job in jobs if job.id == review_queue(workspace)[0].job)
    other = next(job for job in jobs if job is not first)
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look() as sight:
        signed_in(sight, server, "ada")
        # Somebody else has settled it meanwhile.
        assert donewhen(["start", first.id], tmp_path).returncode == 0
        playwright.expect(sight.page.locator("[data-item]")).to_have_count(1)
        until(sight.page, "performance.now() > 500")
        sight.page.keyboard.press("p")
        playwright.expect(sight.page.locator("[data-item].chosen")).to_have_count(0)
        assert words_of_people(workspace, other) == []
        sight.page.keyboard.press("j")
        sight.page.keyboard.press("p")
        sight.page.wait_for_selector("text=Nothing to review")
        assert words_of_people(workspace, other) == [("ada", "pass")]


def test_nothing_that_others_wrote_is_run(tmp_path: Path, serve: Serve, look: Any) -> None:
    workspace, (job,) = shop(tmp_path, HOSTILE, outputs=["/<img src=x onerror=alert(3)>.txt"])
    (tmp_path / "check.sh").write_text(f"cat <<'E'\n{HOSTILE}\nE\nexit 1\n", encoding="utf-8")
    other = add_job(
        workspace, HOSTILE, depends_on=[job.id], criteria=[f"{HOSTILE}\n  check: run sh check.sh"], outputs=["/out.txt"]
    )
    agree_to(workspace, [other])
    start_job(workspace, job.id, BOT)
    complete(workspace, job.id, BOT)
    set_job_aside(workspace, job.id, BOT, question=HOSTILE)
    folder = tmp_path / "missions" / "tone"
    make_mission(folder, 60)
    (folder / "initial_guidance.json").write_text(
        '{"S1": "<script>alert(4)</script>", "G0": "<img src=x onerror=alert(5)>"}', encoding="utf-8"
    )
    tickets = (folder / "tickets.jsonl").read_text(encoding="utf-8")
    (folder / "tickets.jsonl").write_text(tickets.replace("I ", "<img src=x onerror=alert(6)> I "), encoding="utf-8")
    learned(folder, status=1)  # The model can't read this scaffold.
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    with look() as sight:
        page = sight.page
        signed_in(sight, server, "ada")
        base = page.url.removesuffix("/review")
        requests: list[str] = []
        page.on("request", lambda one: requests.append(one.url))
        for path in ("/", f"/jobs/{job.id}", f"/jobs/{other.id}", "/#view=graph", "/#view=ledger", f"/#job={job.id}",
                     "/review", "/missions", "/missions/tone"):  # fmt: skip
            page.goto("about:blank")
            page.goto(base + path)
            page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            assert page.title() != "owned", path
            assert page.locator("main script, main img, main a[href^='javascript']").count() == 0, path
            assert re.search(r"exe (49|.* 49)", page.content()) is None, path
        page.goto(f"{base}/review")
        for item in page.locator("[data-open]").all():
            assert item.get_attribute("href").startswith("/as/")
        page.goto(f'{server.url}/#q=<script>alert(7)</script>&status="><img src=x onerror=alert(8)>')
        page.get_by_text("No matching jobs").wait_for()
        playwright.expect(page.locator("main script, main img")).to_have_count(0)
        assert {re.sub(r"^(http://[^/]+).*", r"\1", request) for request in requests} == {server.url}
        sight.nothing_wrong()


def test_the_policy_of_the_page_would_stop_a_script_that_got_in(tmp_path: Path, serve: Serve, look: Any) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path)
    with look(expected="Content Security Policy") as sight:
        sight.page.goto(server.url)
        sight.page.evaluate(_ATTACK)
        until(sight.page, "(window.violations ?? []).length >= 3")
        assert sight.page.evaluate("window.owned ?? null") is None
        sight.page.locator("main").wait_for()


def test_no_other_page_can_show_it_in_a_frame_or_read_it(tmp_path: Path, serve: Serve, look: Any) -> None:
    shop(tmp_path, "Greet")
    server = serve(tmp_path)
    other = serve(tmp_path)
    with look(expected="") as sight:
        page = sight.page
        page.goto(f"{other.url}/static/web.css")
        read = page.evaluate(
            "(url) => fetch(url).then((one) => one.text()).then(() => 'read', () => 'refused')", server.url
        )
        assert read == "refused"


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Job, str]:
    """A project with something of everything."""
    folder = tmp_path_factory.mktemp("full")
    workspace, jobs = shop(folder, "A title with a_very_long_word_" + "x" * 80, "Two", "Three")
    long = add_job(workspace, "Needs the others", depends_on=[job.id for job in jobs], criteria=["It is there"])
    start_job(workspace, jobs[0].id, BOT)
    complete(workspace, jobs[0].id, BOT)
    start_job(workspace, jobs[1].id, BOT)
    set_job_aside(workspace, jobs[1].id, BOT, question="Which of the " + "very " * 60 + "many?")
    agree_to(workspace, [long])
    make_mission(folder / "missions" / "tone", 160)
    learned(folder / "missions" / "tone")
    (run,) = (folder / "missions" / "tone" / "runs").glob("2*")
    return folder, jobs[0], run.name


def rooms(full: tuple[Path, Job, str]) -> list[str]:
    _, job, run = full
    fixed = ["/", "/#status=planned", "/#view=graph", "/#view=numbers", f"/#job={job.id}", f"/jobs/{job.id}", "/review"]
    fixed += ["/missions", "/missions/tone", "/nowhere"]
    return [*fixed, f"/missions/tone/runs/{run}"]


def test_on_a_phone_nothing_is_wider_than_the_screen(full: tuple[Path, Job, str], serve: Serve, look: Any) -> None:
    server = serve(full[0])
    with look(width=360, is_mobile=True, has_touch=True, expected="404") as sight:
        for path in rooms(full):
            sight.page.goto("about:blank")
            sight.page.goto(server.url + path)
            sight.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
            wide = sight.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, (path, wide)
            sight.page.get_by_role("link", name="Board").first.wait_for()
        sight.nothing_wrong()


def test_it_is_light_by_day_and_dark_by_night(full: tuple[Path, Job, str], serve: Serve, look: Any) -> None:
    server = serve(full[0])
    seen: dict[str, list[tuple[float, float]]] = {}
    for scheme in ("light", "dark"):
        with look(color_scheme=scheme, expected="404") as sight:
            for path in rooms(full):
                sight.page.goto("about:blank")
                sight.page.goto(server.url + path)
                seen.setdefault(scheme, []).append(
                    tuple(sight.page.evaluate(_BRIGHTNESS))  # type: ignore[arg-type]
                )
    for ground, ink in seen["light"]:
        assert ground > 0.9 and ink < 0.3
    for ground, ink in seen["dark"]:
        assert ground < 0.2 and ink > 0.7


_ATTACK = """() => {
  const script = document.createElement("script");
  script.textContent = "window.owned = 1";
  const style = document.createElement("style");
  style.textContent = "body { display: none }";
  document.body.append(script, style);
  document.body.insertAdjacentHTML("beforeend", '<img src="/x" onerror="window.owned = 2">');
}"""
_BRIGHTNESS = """() => {
  const light = (color) => color.match(/[\\d.]+/g).slice(0, 3).reduce((sum, one) => sum + one / 255 / 3, 0);
  const style = getComputedStyle(document.body);
  return [light(style.backgroundColor), light(style.color)];
}"""
