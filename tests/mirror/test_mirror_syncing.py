"""A project against a server that behaves like GitHub: what is made, what is changed, what is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import collect_evidence, evidence_statuses
from donewhen.jobs.issues.issue_text import begin_mark
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.mirror.http.errors import MirrorError
from donewhen.mirror.sync.enabling import enable_mirror
from donewhen.mirror.sync.issue_map import map_path, read_map
from sentences import assert_sentences

BOT = Actor("bot")


def snapshot(root: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def test_a_job_becomes_an_issue_with_labels_that_have_their_colours(big_place: Any) -> None:
    job = big_place.job("Read the log", workstream="Räume & Pläne, with a very long title that does not end")
    done = big_place.sync()
    assert job.id in "\n".join([step.told for step in done.done])
    assert_sentences([step.told for step in done.done])
    assert (done.left, big_place.gaps()) == ((), [])
    issue = big_place.issue()
    assert issue["title"] == f"[{job.id}] Read the log"
    assert big_place.labels() == ["status:planned", "ws:raume-plane-with-a-very-long-tit"]
    assert {label["name"]: label["color"] for label in issue["labels"]} == {
        "status:planned": "6b7280",
        "ws:raume-plane-with-a-very-long-tit": "0f6b5d",
    }
    assert issue["body"].startswith(begin_mark(job.id))
    assert "- AC-1: The result is written down." in issue["body"]
    assert big_place.workspace.where(job.path) in issue["body"]


def test_a_sync_is_on_record_in_the_plan_the_map_and_the_ledger(place: Any) -> None:
    job = place.job()
    place.sync()
    url = f"{place.double.api}/octo/demo/issues/1"
    fields = place.read(job).document.fields
    assert (fields["github_issue_number"], fields["github_issue_url"]) == (1, url)
    known = json.loads(map_path(place.workspace).read_text())
    assert known == {
        "schema": "theworkshop.githubmap.v1",
        "repo": "octo/demo",
        "enabled": True,
        "last_sync_at": "2026-02-14T10:00:00Z",
        "issues": {job.id: {"number": 1, "url": url}},
        "milestones": {},
        "project_board": {"id": "", "url": ""},
    }
    (entry,) = place.mirrored(job)
    assert (entry.data["number"], entry.data["url"], entry.data["repo"]) == (1, url, "octo/demo")
    assert entry.data["observed"] == entry.data["wanted"]
    found = place.fact(job)
    assert found[:-1] == (True, True)
    assert_sentences(found[-1])
    assert [finding.code for finding in audit_workspace(place.workspace).findings] in ([], ["anchor_absent"])


def test_a_second_sync_changes_nothing_and_asks_for_nothing_but_what_is_there(place: Any) -> None:
    job = place.job()
    place.sync()
    before, entries = len(place.double.writes), len(place.mirrored(job))
    assert place.sync().done == ()
    assert (len(place.double.writes), len(place.mirrored(job))) == (before, entries)


def test_a_dry_run_only_looks_and_writes_nothing_anywhere(place: Any) -> None:
    for title in ("One", "Two"):
        place.job(title)
    root = place.workspace.root
    before = snapshot(root)
    steps = place.plan().steps
    assert_sentences([step.told.split(" (")[0].split(" for ")[0] for step in steps])
    assert place.double.writes == []
    assert len(place.double.log) >= 3
    assert snapshot(root) == before


def test_a_dry_run_and_the_sync_after_it_agree(place: Any) -> None:
    place.job("One")
    place.sync()
    place.job("Two")
    lines = [step.told for step in place.plan().steps]
    assert [step.told for step in place.sync().done] == lines


def test_a_status_that_changed_changes_the_label_and_no_label_of_others(place: Any) -> None:
    job = place.job()
    place.sync()
    others = {"name": "Help Wanted", "color": "ffffff"}, {"name": "status:review", "color": "ffffff"}
    place.double.repo.labels |= {other["name"].casefold(): other for other in others}
    place.issue()["labels"] += others
    place.issue()["assignees"] = ["grace"]
    place.begin(job)
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    assert job.id in "\n".join([gap.told for gap in place.gaps()])
    assert_sentences([gap.told for gap in place.gaps()])
    place.sync()
    assert place.labels() == ["Help Wanted", "status:in_progress", "status:review"]
    assert place.issue()["assignees"] == ["grace"]
    assert place.fact(job).current


def test_a_done_job_closes_its_issue_and_an_open_one_reopens_it(place: Any) -> None:
    job = place.job()
    place.begin(job)
    place.sync()
    (job.folder / "outputs" / "primary.md").write_text("the result\n")
    (job.folder / "artifacts" / "verification.md").write_text("looked at\n")
    place.edit(job.path, "## Progress Log\n", "## Progress Log\n\n- parsed it\n")
    place.sync()
    finished = complete(place.workspace, job.id, BOT)
    assert finished.done, finished.evaluation
    parity = [component for component in finished.evaluation.score.components if component.name == "parity"]
    assert [(criterion.got, criterion.applies) for criterion in parity] == [(5, True)], (
        "it agreed at the moment of completing"
    )
    assert [gap.field for gap in place.gaps()] == ["status", "state"]
    text = place.gaps()[1].told
    assert job.id in text
    assert_sentences(text)
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    place.sync()
    assert (place.issue()["state"], place.issue()["state_reason"]) == ("closed", "completed")
    assert complete(place.workspace, job.id, BOT).repeated, "the record of a sync leaves the promise as it is"
    (job.folder / "outputs" / "primary.md").unlink()
    assert not complete(place.workspace, job.id, BOT).done
    place.sync()
    assert (place.issue()["state"], place.issue()["state_reason"]) == ("open", "reopened")
    assert place.gaps() == []


def test_a_cancelled_job_closes_its_issue_as_not_planned_and_one_without_an_issue_needs_none(place: Any) -> None:
    job, other = place.job("One"), place.job("Two")
    place.begin(job)
    place.begin(other)
    place.sync(only=job.id)
    for each_job in (job, other):
        decide(
            place.workspace, place.read(each_job), Decision("cancel", "not wanted"), Approval(Actor("ada", "person"))
        )
    place.sync()
    assert (place.issue()["state"], place.issue()["state_reason"]) == ("closed", "not_planned")
    assert place.labels() == ["status:cancelled"]
    assert [*place.double.repo.issues] == [1]
    assert place.gaps() == []


def test_a_wave_becomes_a_milestone_that_is_due_on_its_last_day(place: Any) -> None:
    job = place.job()
    plan = place.workspace.project_file
    place.edit(plan, "waves: []", "waves:\n  - id: WV-1\n    title: First steps\n    end: 2026-03-01")
    place.edit(job.path, 'wave_id: ""', "wave_id: WV-1")
    place.sync()
    (made,) = place.double.asked("POST", ".*/milestones")
    assert made.body == {"title": "WV-1 First steps", "due_on": "2026-03-01T23:59:59Z"}
    assert place.issue()["milestone"]["title"] == "WV-1 First steps"
    assert json.loads(map_path(place.workspace).read_text())["milestones"] == {
        "WV-1": {"number": 1, "url": f"{place.double.api}/octo/demo/milestone/1", "title": "WV-1 First steps"}
    }
    assert place.gaps() == []
    place.edit(plan, "First steps", "Second thoughts")
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    place.sync()
    assert place.issue()["milestone"]["title"] == "WV-1 Second thoughts"
    assert [*place.double.repo.milestones] == [1]
    assert place.fact(job).current
    place.edit(job.path, "wave_id: WV-1", 'wave_id: ""')
    place.sync()
    assert place.issue()["milestone"] is None


def test_a_wave_that_ends_on_another_day_changes_its_milestone(place: Any) -> None:
    job = place.job()
    plan = place.workspace.project_file
    place.edit(plan, "waves: []", "waves:\n  - id: WV-1\n    title: First\n    end: 2026-03-01")
    place.edit(job.path, 'wave_id: ""', "wave_id: WV-1")
    place.sync()
    assert place.sync().done == ()
    place.edit(plan, "2026-03-01", "2026-04-02")
    assert_sentences([step.told for step in place.sync().done])
    assert place.double.repo.milestones[1]["due_on"].startswith("2026-04-02")


def test_an_issue_without_our_title_and_our_part_is_still_ours_by_the_ledger(place: Any) -> None:
    job = place.job()
    place.sync()
    place.issue().update(title="Mine now", body="All mine.")
    assert [gap.field for gap in place.gaps()] == ["title", "body"]
    place.sync()
    assert [*place.double.repo.issues] == [1]
    assert place.issue()["title"] == f"[{job.id}] Parser"
    assert place.issue()["body"].endswith("All mine.")


def test_a_milestone_of_others_stays_where_a_job_has_no_wave(place: Any) -> None:
    job = place.job()
    place.sync()
    place.double.repo.milestones[5] = {"number": 5, "title": "Theirs", "due_on": None}
    place.issue()["milestone"] = place.double.repo.milestones[5]
    assert place.gaps() == []
    place.edit(job.path, "title: Parser", "title: Other")
    place.sync()
    assert place.issue()["milestone"]["title"] == "Theirs"


def test_what_somebody_edited_by_hand_is_explained_and_put_back_and_their_own_words_stay(place: Any) -> None:
    job = place.job()
    place.sync()
    issue = place.issue()
    ours = issue["body"]
    issue["title"] = "My own title"
    changed = ours.replace("The result is written down.", "Anything goes.")
    issue["body"] = f"Before.\r\n\r\n{changed}\r\n\r\nAfter."
    payload = {gap.field: gap.told for gap in place.gaps()}
    assert payload == {
        "title": f"Issue 1 of {job.id} is titled “My own title”.",
        "body": f"Issue 1 of {job.id} has “- AC-1: Anything goes.” in its managed block, "
        "expected “- AC-1: The result is written down.”.",
    }
    place.sync()
    assert issue["title"] == f"[{job.id}] Parser"
    assert issue["body"] == f"Before.\n\n{ours}\n\nAfter."


def test_a_mark_that_somebody_deleted_comes_back_above_what_is_there(place: Any) -> None:
    job = place.job()
    place.sync()
    issue = place.issue()
    ours = issue["body"]
    issue["body"] = ours.split("\n\n", 1)[1] + "\n\nMine."
    assert job.id in "\n".join([gap.told for gap in place.gaps()])
    assert_sentences([gap.told for gap in place.gaps()])
    place.sync()
    assert issue["body"].startswith(ours)
    assert issue["body"].endswith("Mine.")
    assert issue["body"].count(begin_mark(job.id)) == 1


def test_a_body_of_the_existing_tool_stays_below_ours(place: Any) -> None:
    job = place.job()
    place.double.open_issue(f"[{job.id}] Parser", "Written by another tool.")
    place.sync()
    assert [*place.double.repo.issues] == [1]
    assert place.issue()["body"].startswith(begin_mark(job.id))
    assert place.issue()["body"].endswith("Written by another tool.")


def test_a_deleted_issue_is_explained_and_made_anew(place: Any) -> None:
    job = place.job()
    place.sync()
    del place.double.repo.issues[1]
    place.double.repo.deleted.add(1)
    assert job.id in "\n".join([gap.told for gap in place.gaps()])
    assert_sentences([gap.told for gap in place.gaps()])
    place.sync()
    assert read_map(place.workspace).issue(job.id) == 2
    assert place.gaps() == []


def test_a_moved_issue_is_explained_and_left_to_a_person(place: Any) -> None:
    job = place.job()
    place.sync()
    there = place.double.repos["octo/other"] = type(place.double.repo)("octo/other")
    there.issues[9] = {**place.double.repo.issues.pop(1), "number": 9}
    there.issues[9]["repository_url"] = f"{place.double.api}/repos/octo/other"
    place.double.repo.moved[1] = ("octo/other", 9)
    (gap,) = place.gaps()
    assert job.id in gap.told
    assert_sentences(gap.told)
    writes = len(place.double.writes)
    assert place.sync().left == (gap,)
    assert len(place.double.writes) == writes, "no second issue, and nothing in another repository"


def test_a_renamed_repository_goes_on_under_its_new_name(place: Any) -> None:
    job = place.job()
    place.sync()
    repo = place.double.repos.pop("octo/demo")
    repo.name = "octo/renamed"
    place.double.repos = {"octo/renamed": repo}
    place.double.renamed["octo/demo"] = "octo/renamed"
    repo.issues[1]["repository_url"] = f"{place.double.api}/repos/octo/renamed"
    place.begin(job)
    place.sync()
    assert place.labels() == ["status:in_progress"]
    assert_sentences(place.told[-1])
    assert place.fact(job).current
    enable_mirror(place.workspace, "octo/renamed", place.environ)
    assert place.fact(job).current
    assert place.gaps() == []


def test_a_map_of_another_repository_is_not_used(place: Any) -> None:
    job = place.job()
    place.sync()
    place.double.repos["octo/other"] = type(place.double.repo)("octo/other")
    enable_mirror(place.workspace, "octo/other", place.environ)
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    before = map_path(place.workspace).read_bytes()
    with pytest.raises(MirrorError) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert map_path(place.workspace).read_bytes() == before


def test_pull_requests_are_no_issues(place: Any) -> None:
    job = place.job()
    place.double.open_issue(f"[{job.id}] Parser", begin_mark(job.id), pull_request={"url": "…"})
    place.sync()
    assert read_map(place.workspace).issue(job.id) == 2
    assert place.issue(1)["labels"] == []


def test_an_issue_with_our_mark_by_a_stranger_is_not_taken_for_ours(place: Any) -> None:
    job = place.job()
    place.double.open_issue("spam", begin_mark(job.id), author_association="NONE")
    place.sync()
    assert read_map(place.workspace).issue(job.id) == 2
    assert place.issue(1)["title"] == "spam"


def test_an_issue_made_by_a_program_of_the_repository_is_found_again(place: Any) -> None:
    job = place.job()
    place.double.author = {"login": "github-actions[bot]", "type": "Bot"}
    place.double.association = "NONE"
    place.sync()
    map_path(place.workspace).unlink()
    place.edit(job.path, "title: Parser", "title: Other")
    place.sync()
    assert [*place.double.repo.issues] == [1]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"title": "Somebody's own"}, "issue 1 bears no mark of this job"),
        ({"title": "A change", "pull_request": {}}, "number 1 is a pull request"),
    ],
    ids=["another issue", "a pull request"],
)
def test_a_map_that_points_at_something_else_is_not_followed(place: Any, values: dict[str, Any], why: str) -> None:
    job = place.job()
    place.double.open_issue(**values)
    path = map_path(place.workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"schema": "theworkshop.githubmap.v1", "repo": "octo/demo", "issues": {job.id: {"number": 1}}})
    )
    assert job.id in "\n".join([gap.told for gap in place.sync().left])
    assert_sentences([gap.told for gap in place.sync().left])
    assert place.double.writes == []


def test_two_issues_with_one_mark_are_told_and_the_older_one_is_ours(place: Any) -> None:
    job = place.job()
    place.double.open_issue("first", begin_mark(job.id))
    place.double.open_issue("second", begin_mark(job.id))
    done = place.sync()
    assert done.looked.doubled == {job.id: (2,)}
    assert (place.issue(1)["title"], place.issue(2)["title"]) == (f"[{job.id}] Parser", "second")


def test_one_job_alone_is_synced_without_reading_every_issue(place: Any) -> None:
    one, two = place.job("One"), place.job("Two")
    place.sync()
    place.begin(one)
    place.begin(two)
    place.double.log.clear()
    place.sync(only=one.id)
    assert place.double.asked("GET", "/repos/octo/demo/issues") == []
    assert (place.labels(1), place.labels(2)) == (["status:in_progress"], ["status:planned"])


def test_two_hundred_jobs_are_found_again_over_all_pages(place: Any) -> None:
    jobs = [place.job(f"Job {number}") for number in range(201)]
    place.sync()
    assert len(place.double.repo.issues) == 201
    map_path(place.workspace).unlink()
    place.double.log.clear()
    assert place.gaps() == []
    pages = place.double.asked("GET", "/repos/octo/demo/issues")
    assert [page.query.get("page", "1") for page in pages] == ["1", "2", "3"]
    assert {page.query["per_page"] for page in pages} == {"100"}
    assert place.double.writes == []
    assert place.fact(jobs[-1]).current


def test_a_label_that_the_server_has_in_other_letters_is_the_same(place: Any) -> None:
    place.job()
    place.double.repo.labels["status:planned"] = {"name": "Status:Planned", "color": "123456"}
    place.sync()
    assert place.double.asked("POST", ".*/labels") == []
    assert place.labels() == ["Status:Planned"]
    assert place.gaps() == []


def test_what_the_server_drops_in_silence_is_told_and_is_not_on_record_as_done(place: Any) -> None:
    job = place.job()
    place.double.repo.labels["status:planned"] = {"name": "status:planned", "color": "6b7280"}
    place.double.repo.may_write = False
    done = place.sync()
    assert job.id in "\n".join([gap.told for gap in done.left])
    assert_sentences([gap.told for gap in done.left])
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])


def test_a_plan_that_cant_be_read_keeps_nobody_from_the_others(place: Any) -> None:
    broken, good = place.job("One"), place.job("Two")
    broken.path.write_text("---\ntitle: [\n---\n")
    done = place.sync()
    assert len(done.looked.unreadable) == 1
    assert read_map(place.workspace).issue(good.id) == 1


def test_one_issue_that_is_refused_keeps_nobody_from_the_others(place: Any, trouble: Any) -> None:
    one, two = place.job("One"), place.job("Two")
    error = {"field": "title", "code": "custom", "message": "no\x1b[31m"}
    body = json.dumps({"message": "Validation Failed", "errors": [error, "and", 7]}).encode()
    place.double.next(trouble(status=422, body=body), method="POST", path=".*/issues")
    done = place.sync()
    (gap,) = done.left
    assert gap.told == (
        f"The issue of {one.id} could not be written: "
        "The server rejected POST with status 422: Validation Failed; title custom no; and; 7."
    )
    assert read_map(place.workspace).issue(two.id) == 1
    assert place.sync().left == ()


def test_a_text_of_others_that_leaves_no_room_for_ours_is_not_cut(place: Any) -> None:
    job = place.job()
    theirs = "x" * 65_500
    place.double.open_issue(f"[{job.id}] Parser", theirs)
    (gap,) = place.sync().left
    assert_sentences(gap.told)
    assert place.issue()["body"] == theirs


def test_what_somebody_writes_between_looking_and_writing_is_kept(place: Any) -> None:
    job = place.job()
    place.sync()
    place.edit(job.path, "title: Parser", "title: Other")
    place.edit(job.path, "The result is written down.", "The result is written up.")
    answer = place.double.answer

    def meanwhile(asked: Any) -> Any:
        given = answer(asked)
        if asked.path.endswith("/issues"):
            place.issue()["body"] += "\n\nJust now."
        return given

    place.double.answer = meanwhile
    place.sync()
    assert place.issue()["body"].endswith("Just now.")
    assert "written up" in place.issue()["body"]


def test_a_map_keeps_what_others_wrote_into_it(place: Any) -> None:
    job = place.job()
    path = map_path(place.workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    theirs = {
        "schema": "theworkshop.githubmap.v1",
        "repo": "octo/demo",
        "project_board": {"id": "PVT_1", "url": "u"},
        "more": 1,
    }
    path.write_text(json.dumps(theirs))
    place.sync()
    found = json.loads(path.read_text())
    assert (found["project_board"], found["more"]) == ({"id": "PVT_1", "url": "u"}, 1)
    assert found["issues"][job.id]["number"] == 1


def test_a_sync_makes_no_evidence_stale(place: Any, git: Any) -> None:
    git(place.workspace.root, "init", "-q")
    job = place.job(criteria=["It runs.\n  check: run true"])
    place.begin(job)
    git(place.workspace.root, "add", "-A")
    collect_evidence(place.workspace, place.read(job), BOT)
    place.sync()
    git(place.workspace.root, "add", "-A")
    assert {status.state for status in evidence_statuses(place.workspace, place.read(job))} == {"passed"}
