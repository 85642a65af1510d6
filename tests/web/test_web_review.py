"""Verdicts on the page: who may give one, what becomes of it, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from web_kit import BOT, Got, Person, Server, agree_to, shop

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from changes_kit import PRICE, outside, shop_with

from donewhen.demo.example_mission import make_mission
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.setting_aside import record_dispute, set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.judging.labels import read_label_log
from donewhen.review.queue import review_queue
from sentences import assert_sentences, visible

Serve = Callable[..., Server]


class Disputed(NamedTuple):
    """A job whose refusal an agent disputes."""

    folder: Path
    workspace: Workspace
    job: Job

    @property
    def item(self) -> str:
        (found,) = review_queue(self.workspace)
        return found.id

    def words_of_people(self) -> list[Entry]:
        return [entry for entry in self.workspace.ledger.read(self.job.id).entries if entry.type == "overridden"]


@pytest.fixture
def disputed(tmp_path: Path) -> Disputed:
    workspace, (job,) = shop(tmp_path, "Greet")
    start_job(workspace, job.id, BOT)
    (tmp_path / "out.txt").write_text("hello\n", encoding="utf-8")
    (tmp_path / "check.sh").write_text("echo it is fine, but the check is broken; exit 1\n", encoding="utf-8")
    assert not complete(workspace, job.id, BOT).done
    record_dispute(workspace, job.id, BOT, "The check itself is broken.")
    return Disputed(tmp_path, workspace, job)


def form_of(page: Got) -> dict[str, str]:
    """What the first verdict form of a page would send."""
    form = re.search(r'<form class="verdict-form".*?</form>', page.text, re.DOTALL)
    assert form is not None, page.text
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[0].split("<button")[0]))


def given(person: Person, item: str, verdict: str, reason: str = "") -> Got:
    fields = form_of(person.get(f"/review/{item}"))
    return person.post(f"/review/{item}", {**fields, "verdict": verdict, "reason": reason})


def test_a_persons_verdict_is_on_record_with_their_name_and_opens_the_gate(disputed: Disputed, serve: Serve) -> None:
    ada = serve(disputed.folder, "--reviewer", "ada", person=True).signed_in("ada")
    item = disputed.item
    assert item in ada.get("/review").text
    answer = given(ada, item, "pass", "It says hello, which is all it has to.")
    assert answer.status == 303
    (entry,) = disputed.words_of_people()
    assert entry.by == ("ada", "person")
    assert (entry.data["verdict"], entry.data["reason"]) == ("pass", "It says hello, which is all it has to.")
    after = ada.get(answer.headers["location"].removeprefix(ada.base))
    assert_sentences(visible(after.text))
    assert complete(disputed.workspace, disputed.job.id, BOT).done


def test_a_fail_is_a_verdict_too_and_opens_nothing(disputed: Disputed, serve: Serve) -> None:
    ada = serve(disputed.folder, "--reviewer", "ada", person=True).signed_in("ada")
    assert given(ada, disputed.item, "fail").status == 303
    (entry,) = disputed.words_of_people()
    assert entry.data["verdict"] == "fail"
    assert not complete(disputed.workspace, disputed.job.id, BOT).done


def test_without_reviewers_it_is_the_account_that_started_it(disputed: Disputed, serve: Serve) -> None:
    from donewhen.jobs.ledger.approval import person_at_terminal

    name = person_at_terminal().name
    somebody = serve(disputed.folder, person=True).signed_in(name)
    assert given(somebody, disputed.item, "pass").status == 303
    assert disputed.words_of_people()[0].by == person_at_terminal()


def test_started_without_a_terminal_the_page_is_for_reading_and_says_why(disputed: Disputed, serve: Serve) -> None:
    server = serve(disputed.folder)
    item = disputed.item
    for path in ("/review", f"/review/{item}"):
        page = server.get(path).text
        assert_sentences(visible(page))
        assert "donewhen review" in page
        assert "verdict-form" not in page
    assert "sign-in" not in server.screen
    assert server.post(f"/review/{item}", {"verdict": "pass"}).status == 403
    assert disputed.words_of_people() == []


def test_started_by_an_agent_the_page_is_for_reading(disputed: Disputed, serve: Serve) -> None:
    server = serve(disputed.folder, person=True, env={"CLAUDECODE": "1"})
    assert_sentences(server.screen)
    assert "sign-in" not in server.screen
    assert "CLAUDECODE" in server.get("/review").text


def test_looking_on_without_signing_in_shows_everything_but_the_buttons(disputed: Disputed, serve: Serve) -> None:
    server = serve(disputed.folder, "--reviewer", "ada", person=True)
    page = server.get(f"/review/{disputed.item}").text
    assert "The check itself is broken." in page
    assert "it is fine, but the check is broken" in page
    assert "verdict-form" not in page
    assert_sentences(visible(page))


def test_a_verdict_without_the_right_form_does_nothing(disputed: Disputed, serve: Serve) -> None:
    server = serve(disputed.folder, "--reviewer", "ada", "--reviewer", "bo", person=True)
    ada, bo = server.signed_in("ada"), server.signed_in("bo")
    item = disputed.item
    fields = {**form_of(ada.get(f"/review/{item}")), "verdict": "pass"}
    path = f"/review/{item}"
    assert ada.post(path, {**fields, "csrf": ""}).status == 403
    assert ada.post(path, {**fields, "csrf": bo.csrf}).status == 403
    assert ada.post(path, fields, Origin="http://evil.example").status == 403
    assert ada.post(path, fields, Origin=f"http://127.0.0.1:{server.port + 1}").status == 403
    assert ada.post(path, fields, Cookie=bo.cookie).status == 403
    assert server.post(path, fields).status == 403
    assert ada.post(path, {**fields, "verdict": "maybe"}).status == 400
    assert ada.post(path, {**fields, "verdict": ""}).status == 400
    assert ada.post("/review/0000000000", fields).status == 404
    assert ada.post(f"/review/{item[:4]}", fields).status == 404
    assert ada.get(f"{path}?verdict=pass&csrf={ada.csrf}").status == 200
    assert disputed.words_of_people() == []
    assert ada.post(path, fields).status == 303


def test_a_verdict_is_about_what_was_seen_and_nothing_else(disputed: Disputed, serve: Serve) -> None:
    ada = serve(disputed.folder, "--reviewer", "ada", person=True).signed_in("ada")
    item = disputed.item
    fields = {**form_of(ada.get(f"/review/{item}")), "verdict": "pass"}
    (disputed.folder / "out.txt").write_text("something else\n", encoding="utf-8")
    answer = ada.post(f"/review/{item}", fields)
    assert answer.status in (400, 404)
    assert disputed.words_of_people() == []


def test_a_second_press_of_the_same_button_does_nothing(disputed: Disputed, serve: Serve) -> None:
    ada = serve(disputed.folder, "--reviewer", "ada", person=True).signed_in("ada")
    item = disputed.item
    fields = {**form_of(ada.get(f"/review/{item}")), "verdict": "pass"}
    assert ada.post(f"/review/{item}", fields).status == 303
    again = ada.post(f"/review/{item}", fields)
    assert again.status == 404
    assert_sentences(visible(again.text))
    assert len(disputed.words_of_people()) == 1


def test_a_question_is_answered_in_words_and_nothing_else(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    start_job(workspace, job.id, BOT)
    set_job_aside(workspace, job.id, BOT, question="Comma or semicolon?")
    ada = serve(tmp_path, "--reviewer", "ada", person=True).signed_in("ada")
    page = ada.get("/review").text
    assert "Comma or semicolon?" in page
    (item,) = review_queue(workspace)
    for empty in ("", "   "):
        assert given(ada, item.id, "answer", empty).status == 400
    assert given(ada, item.id, "pass", "Comma.").status == 400
    assert given(ada, item.id, "answer", "Comma, as in March.").status == 303
    entry = workspace.ledger.read(job.id).entries[-1]
    assert (entry.data["decision"], entry.data["reason"], entry.by) == (
        "answer",
        "Comma, as in March.",
        ("ada", "person"),
    )
    assert review_queue(workspace) == ()


def test_words_that_can_not_be_recorded_are_given_back(tmp_path: Path, serve: Serve) -> None:
    workspace, (job,) = shop(tmp_path, "Greet")
    start_job(workspace, job.id, BOT)
    set_job_aside(workspace, job.id, BOT, question="Comma or semicolon?")
    ada = serve(tmp_path, "--reviewer", "ada", person=True).signed_in("ada")
    (item,) = review_queue(workspace)
    fields = {**form_of(ada.get(f"/review/{item.id}")), "verdict": "answer", "reason": "Comma, after much thought."}
    set_job_aside(workspace, job.id, BOT, question="Or a tab?")
    refused = ada.post(f"/review/{item.id}", fields)
    assert refused.status == 404
    assert "You wrote: Comma, after much thought." in refused.text
    (other,) = review_queue(workspace)
    assert other.question == "Or a tab?"


def judged(tmp_path: Path, rule: str = "") -> tuple[Workspace, Job, Path]:
    """A job that a judge was asked about; without a rule that fits, it leaves that to people."""
    folder = tmp_path / "missions" / "tone"
    make_mission(folder, 60)
    settings = folder / "mission.toml"
    checked = settings.read_text(encoding="utf-8") + "\n[manual_review]\nspot_check = 1.0\n"
    settings.write_text(checked, encoding="utf-8")
    if rule:
        guidance = folder / "initial_guidance.json"
        known = json.loads(guidance.read_text(encoding="utf-8"))
        guidance.write_text(json.dumps({**known, "G1": rule}), encoding="utf-8")
    workspace, _ = shop(tmp_path, agreed=False)
    job = add_job(workspace, "Greet", criteria=["It reads well\n  check: judge:tone"], outputs=["/out.txt"])
    agree_to(workspace, [job])
    start_job(workspace, job.id, BOT)
    (tmp_path / "out.txt").write_text("hello <script>alert(1)</script>\n", encoding="utf-8")
    complete(workspace, job.id, BOT)
    return workspace, job, folder


def test_what_the_judge_saw_and_said_is_shown_and_the_verdict_becomes_a_ticket(tmp_path: Path, serve: Serve) -> None:
    workspace, job, mission = judged(tmp_path)
    server = serve(tmp_path, "--reviewer", "ada", "--reviewer", "bo", person=True)
    ada = server.signed_in("ada")
    (item,) = review_queue(workspace)
    assert item.kind == "low_agreement"
    page = ada.get(f"/review/{item.id}").text
    assert "hello &lt;script&gt;" in page
    assert re.search(r"<dt>votes</dt><dd>\d+ pass, \d+ fail</dd>", page)
    assert "<dt>guidance</dt><dd>step 0</dd>" in page
    assert "<dt>agreement</dt>" in page and "<dt>margin</dt>" in page
    evidence = server.get(f"/jobs/{job.id}").text
    assert 'href="/missions/tone"' in evidence
    assert re.search(r"<dt>votes</dt><dd>\d+ pass, \d+ fail</dd>", evidence)
    assert given(ada, item.id, "fail", "It shouts.").status == 303
    (label,) = read_label_log(mission)
    assert (label.by, label.label, label.reason) == ("ada", "fail", "It shouts.")
    # Another person may give a second opinion, and doesn't see the first one's before.
    bo = server.signed_in("bo")
    (second,) = review_queue(workspace, by="bo")
    asked = bo.get(f"/review/{second.id}").text
    assert_sentences(visible(asked))
    assert "It shouts." not in asked
    assert second.id not in ada.get("/review").text
    assert given(bo, second.id, "fail").status == 303
    assert [one.by for one in read_label_log(mission)] == ["ada", "bo"]
    about = server.get("/missions/tone").text
    assert_sentences(visible(about))
    assert "ada" in about and "bo" in about


def test_how_far_judge_and_people_agree_is_drawn_with_the_alarm(tmp_path: Path, serve: Serve) -> None:
    workspace, _, _ = judged(tmp_path, rule='When "hello" occurs, the verdict is pass.')
    server = serve(tmp_path, "--reviewer", "ada", person=True)
    ada = server.signed_in("ada")
    assert_sentences(visible(server.get("/missions/tone").text))
    (item,) = review_queue(workspace)
    assert item.kind == "spot_check"
    assert item.said is not None
    assert given(ada, item.id, "fail" if item.said.verdict == "pass" else "pass").status == 303
    page = server.get("/missions/tone").text
    assert_sentences(visible(page))
    assert "Now 0 % of 1" in page


# Changed files


def test_a_person_accepts_the_files_that_the_page_has_shown(tmp_path: Path, serve: Serve) -> None:
    held = outside(tmp_path / "shop")
    ada = serve(held.root, "--reviewer", "ada", person=True).signed_in("ada")
    (item,) = held.items()
    shown = ada.get(f"/review/{item.id}").text
    assert "expected.txt" in shown and '<span class="added">+3</span>' in shown
    assert given(ada, item.id, "pass", "It was wrong.").status == 303
    assert held.decisions == [("accept_changes", "It was wrong.", "person")]
    assert held.complete().done


def test_a_person_refuses_them_with_a_reason(tmp_path: Path, serve: Serve) -> None:
    held = outside(tmp_path / "shop")
    ada = serve(held.root, "--reviewer", "ada", person=True).signed_in("ada")
    (item,) = held.items()
    assert given(ada, item.id, "fail", "Four is right.").status == 303
    assert held.decisions == [("refuse_changes", "Four is right.", "person")]
    assert "refused these changes: Four is right." in ada.get(f"/jobs/{held.id}").text


def test_a_person_accepts_the_lines_that_the_page_has_shown(tmp_path: Path, serve: Serve) -> None:
    held = shop_with(tmp_path / "shop", f'It works\n  check: run {sys.executable} -c "import sys; sys.exit(0)"')
    held.write("src/shop/price.py", "import sys\n\n\ndef total(prices):\n    return sys._getframe(1).f_locals\n")
    assert not held.complete().done
    ada = serve(held.root, "--reviewer", "ada", person=True).signed_in("ada")
    (item,) = held.items()
    shown = ada.get(f"/review/{item.id}").text
    assert "line 5, frames: uses sys._getframe" in shown
    assert '<span class="added">+    5      return sys._getframe(1).f_locals</span>' in shown
    assert given(ada, item.id, "pass", "It draws errors.").status == 303
    assert held.decisions == [("accept_signs", "It draws errors.", "person")]
    assert held.complete().done


def test_files_that_changed_after_they_were_shown_are_not_accepted(tmp_path: Path, serve: Serve) -> None:
    held = outside(tmp_path / "shop")
    ada = serve(held.root, "--reviewer", "ada", person=True).signed_in("ada")
    (item,) = held.items()
    fields = {**form_of(ada.get(f"/review/{item.id}")), "verdict": "pass"}
    held.write("expected.txt", "3\n\n")
    assert not held.complete().done
    answer = ada.post(f"/review/{item.id}", fields)
    assert answer.status == 404
    assert_sentences(visible(answer.text))
    assert held.decisions == []


def test_whoever_has_not_signed_in_accepts_nothing(tmp_path: Path, serve: Serve) -> None:
    held = outside(tmp_path / "shop")
    server = serve(held.root)
    (item,) = held.items()
    assert '<form class="verdict-form"' not in server.get(f"/review/{item.id}").text
    assert server.post(f"/review/{item.id}", {"verdict": "pass"}).status == 403
    assert held.decisions == []


def test_a_hostile_diff_is_only_text_on_the_page(tmp_path: Path, serve: Serve) -> None:
    check = "import sys; sys.exit('3' not in open('expected.txt').read())"
    held = shop_with(tmp_path / "shop", f'It is there\n  check: run {sys.executable} -c "{check}"')
    held.write("src/shop/price.py", PRICE.format(result="1"))
    held.write("expected.txt", "3</span></pre><script>alert(1)</script>\u202e\x1b[2J\n")
    assert not held.complete().done
    page = serve(held.root).get(f"/review/{held.items()[0].id}").text
    assert '<span class="added">+3&lt;/span&gt;&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;</span>' in page
