"""Does the record hold? Each way in which it may not, on a real workspace with real git, and its innocent twin."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.locks import locked
from donewhen.jobs.audit.audit import Audit, AuditFinding, audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace, find_workspace

ME = Approval(Actor("me", "person"))
Git = Callable[..., str]


@pytest.fixture
def shop(repository: Path, git: Git) -> Workspace:
    """Two jobs, agreed, with a run of each, and all of it committed."""
    (repository / "main.py").write_text("print('hello')\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "code")
    made = create_project(repository, "Shop")
    jobs = [add_job(made, title, criteria=["It works", "It is quick"], commands=["true"]) for title in ("One", "Two")]
    seal(made, *jobs)
    for job in jobs:
        assert run_as_evidence(made, job, ["true"], ME.by).passed
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "work")
    return made


def seal(workspace: Workspace, *jobs: Any) -> None:
    for proposal in agreement_proposals(workspace, jobs):
        agree(workspace, proposal, ME)


def without_anchor(found: Audit) -> list[AuditFinding]:
    return [finding for finding in found.findings if finding.code != "anchor_absent"]


def findings_in(workspace: Workspace) -> list[tuple[str, str, str]]:
    return [
        (finding.severity, str(finding.code), finding.where) for finding in without_anchor(audit_workspace(workspace))
    ]


def chain_of(workspace: Workspace, name: str) -> Path:
    return workspace.folder / "ledger" / f"{workspace.job(name).id}.jsonl"


def edit(workspace: Workspace, name: str, old: str, new: str) -> str:
    """Change a plan file by hand; gives back its name and the line that was changed."""
    path = workspace.place(name).path
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return f"{workspace.where(path)}:{text[: text.index(old)].count(chr(10)) + 1}"


def blob(workspace: Workspace, name: str) -> Path:
    content = workspace.folder / "evidence" / name.partition(":")[2][:2] / name.partition(":")[2]
    assert content.is_file()
    return content


def test_what_fits_together_is_clean_and_counted(shop: Workspace) -> None:
    found = audit_workspace(shop)
    assert (found.jobs, found.chains, found.entries, found.evidence, found.anchors) == (2, 3, 5, 6, 0)
    assert found.clean
    assert [(finding.severity, finding.code) for finding in found.findings] == [("warning", "anchor_absent")]
    assert found.findings[0].next == "donewhen anchor"


def test_a_project_that_nobody_has_touched_is_clean(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop")
    add_job(made, "One")
    assert audit_workspace(made) == Audit(1, 0, 0, 0, 0, ())


def test_an_audit_leaves_no_trace(shop: Workspace, git: Git, donewhen: Callable[..., Any]) -> None:
    shutil.rmtree(shop.folder / "state")
    before = git(shop.root, "status", "--porcelain", "--ignored")
    assert "state" not in before
    assert donewhen(["audit"], shop.root).returncode == 0
    assert git(shop.root, "status", "--porcelain", "--ignored") == before


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda text: text.replace(b'"passed":true', b'"passed":false'), 2),
        (lambda text: text.replace(b'"kind":"person"', b'"kind":"agent"', 1), 1),
        (lambda text: text.split(b"\n", 1)[1], 1),
        (lambda text: b"\n".join([*text.split(b"\n")[:1], b"not json", *text.split(b"\n")[1:]]), 2),
        (lambda text: text + text.split(b"\n")[1] + b"\n", 3),
    ],
    ids=["changed value", "changed author", "first line gone", "line put in", "line doubled"],
)
def test_a_changed_past_breaks_the_chain_at_its_line(
    shop: Workspace, change: Callable[[bytes], bytes], line: int
) -> None:
    path = chain_of(shop, "one")
    path.write_bytes(change(path.read_bytes()))
    broken = [finding for finding in audit_workspace(shop).findings if finding.code == "chain_broken"]
    assert broken[0].where == f"{shop.where(path)}:{line}"
    assert {item.severity for item in broken} == {"error"}
    assert not audit_workspace(shop).clean


def test_a_torn_last_line_is_a_warning_and_goes_with_the_next_event(shop: Workspace) -> None:
    path = chain_of(shop, "one")
    with path.open("ab") as file:
        file.write(b'{"at":"2026')
    assert findings_in(shop) == [("warning", "torn", f"{shop.where(path)}:3")]
    assert audit_workspace(shop).clean
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    assert findings_in(shop) == []


def test_a_line_cut_short_in_the_middle_of_the_chain_is_not_called_torn(shop: Workspace) -> None:
    path = chain_of(shop, "one")
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(first[:-5] + b"\n" + rest)
    assert "torn" not in {finding.code for finding in audit_workspace(shop).findings}
    assert "chain_broken" in {finding.code for finding in audit_workspace(shop).findings}


def test_a_chain_that_was_written_anew_holds_and_is_found_by_what_was_committed(shop: Workspace) -> None:
    path = chain_of(shop, "one")
    job = shop.job("one")
    entries = shop.ledger.read(job.id).entries
    path.unlink()
    forged = Ledger(path.parent, shop.folder / "state" / "locks")
    for entry in entries:
        forged.append(job.id, entry.type, dict(entry.data) | {"forged": True}, entry.by)
    assert shop.ledger.read(job.id).breaks == ()
    where = shop.where(path)
    assert findings_in(shop) == [("error", "rewritten", where), ("error", "record_gone_back", where)]


def test_a_chain_that_was_shortened_or_removed_is_found_by_what_was_committed(shop: Workspace) -> None:
    path = chain_of(shop, "one")
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    assert ("error", "rewritten", shop.where(path)) in findings_in(shop)
    path.unlink()
    assert ("error", "rewritten", shop.where(path)) in findings_in(shop)


def test_a_chain_that_has_grown_since_it_was_committed_is_in_order(shop: Workspace) -> None:
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    seal(shop, add_job(shop, "Three", criteria=["It works"]))
    assert findings_in(shop) == []


def test_without_a_repository_there_is_no_history_to_hold_against(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop")
    seal(made, add_job(made, "One", criteria=["It works"]))
    assert findings_in(made) == []


def test_a_project_below_the_top_of_its_repository_has_a_history_too(repository: Path, git: Git) -> None:
    made = create_project(repository, "Shop", form="big")
    job = add_job(made, "One", criteria=["It works"], workstream="Web")
    seal(made, job)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "work")
    assert findings_in(made) == []
    path = chain_of(made, job.id)
    path.write_bytes(b"")
    assert ("error", "rewritten", made.where(path)) in findings_in(made)


@pytest.mark.parametrize(("kind", "severity"), [("record", "error"), ("output", "error"), ("manifest", "warning")])
def test_evidence_that_is_gone_is_missing(shop: Workspace, kind: str, severity: str) -> None:
    entry = shop.ledger.read(shop.job("one").id).entries[-1]
    shared = {item.data[kind] for item in shop.ledger.read(shop.job("two").id).entries if kind in item.data}
    blob(shop, entry.data[kind]).unlink()
    expected = [(severity, "evidence_missing", f"{shop.where(chain_of(shop, 'one'))}:2")]
    if entry.data[kind] in shared:
        expected.append((severity, "evidence_missing", f"{shop.where(chain_of(shop, 'two'))}:2"))
    assert findings_in(shop) == expected


@pytest.mark.parametrize("kind", ["record", "output", "manifest"])
def test_evidence_that_says_something_else_now_is_changed(shop: Workspace, kind: str) -> None:
    entry = shop.ledger.read(shop.job("one").id).entries[-1]
    path = blob(shop, entry.data[kind])
    path.write_bytes(path.read_bytes() + b" ")
    found = without_anchor(audit_workspace(shop))
    assert {(item.severity, item.code) for item in found} == {("error", "evidence_changed")}
    assert f"{shop.where(chain_of(shop, 'one'))}:2" in [item.where for item in found]


def test_an_entry_that_names_no_proper_evidence_is_evidence_missing(shop: Workspace) -> None:
    job = shop.job("one")
    shop.ledger.append(job.id, "ran", {"what": "command", "record": "sha256:../../etc/passwd"}, ME.by)
    assert findings_in(shop) == [("error", "evidence_missing", f"{shop.where(chain_of(shop, 'one'))}:3")]


def test_the_outcomes_of_tests_are_evidence_as_well(shop: Workspace) -> None:
    job = shop.job("one")
    (shop.root / "test_it.py").write_text("def test_it():\n    assert True\n")
    ran = run_as_evidence(shop, job, ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"], ME.by)
    record = json.loads(blob(shop, ran.entry.data["record"]).read_bytes())
    assert record["report"] is not None, ran.output
    path = blob(shop, record["report"]["outcomes"])
    path.write_bytes(path.read_bytes().replace(b"passed", b"failed"))
    assert "evidence_changed" in {finding.code for finding in audit_workspace(shop).findings}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("reward_last_score: 0", "reward_last_score: 100"),
        ("truth_last_status: unknown", "truth_last_status: pass"),
        ("status: planned", "status: done"),
        ("iteration: 0", "iteration: 1"),
        ("agreement_status: agreed", "agreement_status: proposed"),
    ],
)
def test_a_field_that_was_typed_by_hand_is_tampered_and_its_line_is_named(shop: Workspace, old: str, new: str) -> None:
    place = edit(shop, "one", old, new)
    assert findings_in(shop) == [("error", "tampered", place)]
    assert new.partition(": ")[2] in without_anchor(audit_workspace(shop))[0].message


def test_a_field_that_was_taken_out_is_tampered_too(shop: Workspace) -> None:
    edit(shop, "one", "agreement_status: agreed\n", "")
    assert findings_in(shop) == [("error", "tampered", shop.where(shop.place("one").path))]


def test_a_field_of_the_project_that_was_typed_by_hand_is_tampered(shop: Workspace) -> None:
    path = shop.project_file
    path.write_text(path.read_text().replace("\nstatus: planned", "\nstatus: done"))
    assert findings_in(shop) == [("error", "tampered", f"{shop.where(path)}:6")]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("reward_target: 80", "reward_target: 10", "reward_target"),
        ("max_iterations: 3", "max_iterations: 99", "max_iterations"),
        ("truth_mode: strict", "truth_mode: off", "truth_mode"),
        ("stakes: normal", "stakes: low", "stakes"),
        ("  - freshness\n", "", "truth_checks"),
        ("- AC-2: It is quick\n", "", "criteria"),
    ],
)
def test_what_was_loosened_or_removed_voids_the_agreement_and_its_line_is_named(
    shop: Workspace, old: str, new: str, field: str
) -> None:
    place = edit(shop, "one", old, new)
    found = without_anchor(audit_workspace(shop))
    assert {(item.severity, item.code) for item in found} == {("error", "voided")}
    assert all(f"{field} was " in item.message for item in found)
    assert found[0].next == f"donewhen contract diff {shop.job('one').id}"
    path, _, line = found[0].where.rpartition(":")
    wanted = int(place.rpartition(":")[2])
    # What is gone is shown at the list in which it stood.
    assert path == place.rpartition(":")[0]
    assert int(line) == wanted if new else int(line) in range(wanted - 3, wanted + 1)


def test_more_criteria_void_nothing(shop: Workspace) -> None:
    edit(shop, "one", "- AC-2: It is quick\n", "- AC-2: It is quick\n- AC-3: It is small\n")
    edit(shop, "one", "reward_target: 80", "reward_target: 85")
    assert findings_in(shop) == []


def test_a_configuration_that_asks_for_less_voids_the_agreement_of_the_project(shop: Workspace) -> None:
    (shop.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    assert [finding[:2] for finding in findings_in(shop)] == [("error", "voided")]


def test_an_agreement_that_was_only_typed_is_a_warning(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop")
    job = add_job(made, "One", criteria=["It works"])
    made.project_file.write_text(made.project_file.read_text().replace(": proposed", ": agreed"))
    assert findings_in(made) == [
        ("warning", "unsealed", made.where(made.project_file)),
        ("warning", "unsealed", made.where(job.path)),
    ]
    assert audit_workspace(made).clean


def test_a_job_that_says_done_and_has_no_record_is_an_error(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop")
    job = add_job(made, "One")
    edit(made, "one", "status: planned", "status: done")
    assert findings_in(made) == [("error", "unsealed", made.where(job.path))]
    assert not audit_workspace(made).clean


def test_a_job_whose_folder_is_gone_is_missing(shop: Workspace) -> None:
    path = chain_of(shop, "one")
    shutil.rmtree(shop.place("one").path.parent)
    assert findings_in(shop) == [("error", "job_missing", shop.where(path))]


def test_a_job_that_nobody_agreed_to_may_go(shop: Workspace) -> None:
    shutil.rmtree(add_job(shop, "Three").folder)
    assert findings_in(shop) == []


def test_a_writer_between_chain_and_plan_is_not_taken_for_a_forger(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain was read before somebody decided, and the plan after that."""
    read = Ledger.read_settled
    job = shop.job("one")

    def overtaken(ledger: Ledger, chain: str) -> Any:
        found = read(ledger, chain)
        if chain == job.id:
            decide(shop, shop.job("one"), Decision("cancel", "not wanted"), ME)
            monkeypatch.undo()
        return found

    monkeypatch.setattr(Ledger, "read_settled", overtaken)
    assert findings_in(shop) == []
    assert shop.job("one").status == "cancelled"


def test_a_line_that_is_being_written_is_read_again_when_it_is_whole(shop: Workspace) -> None:
    path = chain_of(shop, "one")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with locked(shop.folder / "state" / "locks" / f"ledger-{shop.job('one').id}.lock"):
        reader = threading.Thread(target=lambda: found.append(findings_in(shop)))
        found: list[Any] = []
        reader.start()
        path.write_bytes(whole)
    reader.join()
    assert found == [[]]


def test_a_real_edit_is_an_edit_under_the_lock_as_well(shop: Workspace) -> None:
    path = shop.place("one").path
    path.write_text(path.read_text().replace("status: planned", "status: done"))
    assert {code for _, code, _ in findings_in(shop)} == {"tampered"}


@pytest.mark.parametrize(
    ("decision", "field"),
    [
        (Decision("target", "more", 99), "reward_target"),
        (Decision("stakes", "more", "high"), "stakes"),
        (Decision("raise_budget", "more", 9), "max_iterations"),
    ],
)
def test_a_decision_that_was_cut_off_before_the_plan_is_not_held_against_the_plan(
    shop: Workspace, decision: Decision, field: str
) -> None:
    path = shop.place("one").path
    before = path.read_bytes()
    decide(shop, shop.job("one"), decision, ME)
    path.write_bytes(before)
    found = without_anchor(audit_workspace(shop))
    assert {(item.severity, item.code, item.where) for item in found} == {("warning", "interrupted", shop.where(path))}
    assert field in "".join(item.message for item in found)
    assert {job.agreement for job in survey_jobs(shop).jobs} == {"agreed"}
    assert facts_of(shop, shop.job("one")).agreement.state == "agreed"


def test_a_write_that_was_cut_off_is_a_warning_until_the_next_command_finishes_it(shop: Workspace) -> None:
    path = shop.place("one").path
    before = path.read_bytes()
    decide(shop, shop.job("one"), Decision("cancel", "not wanted"), ME)
    after = path.read_bytes()
    path.write_bytes(before)
    found = without_anchor(audit_workspace(shop))
    assert {(item.severity, item.code, item.where) for item in found} == {("warning", "interrupted", shop.where(path))}
    assert "status" in "".join(item.message for item in found)
    run_as_evidence(shop, shop.job("one"), ["true"], ME.by, again=True)
    assert (path.read_bytes(), findings_in(shop)) == (after, [])


@pytest.mark.parametrize(
    ("content", "code"), [(b"\xff", "document"), (b"---\nstatus: x\nid: WI-1\n---\n", "field")], ids=["text", "field"]
)
def test_a_plan_that_can_not_be_read_is_one_finding_and_the_rest_is_looked_at(
    shop: Workspace, content: bytes, code: str
) -> None:
    place = edit(shop, "two", "iteration: 0", "iteration: 1")
    path = shop.place("one").path
    path.write_bytes(content)
    found = findings_in(shop)
    assert [(item[1], item[2].split(":")[0]) for item in found] == [(code, shop.where(path)), ("tampered", place[:-3])]
    assert audit_workspace(shop).jobs == 2


def test_an_id_that_does_not_fit_its_folder_is_a_finding(shop: Workspace) -> None:
    folder = shop.place("one").path.parent
    folder.rename(folder.with_name("WI-20200101-001-one"))
    assert ("workspace", "jobs/WI-20200101-001-one/plan.md") in [
        (finding[1], finding[2].split(":")[0]) for finding in findings_in(shop)
    ]


def test_a_project_file_that_can_not_be_read_is_a_finding(shop: Workspace) -> None:
    shop.project_file.write_text("---\nstatus: what\n---\n")
    assert ("error", "field", f"{shop.where(shop.project_file)}:2") in findings_in(shop)


@pytest.mark.parametrize("odd", ["folder", "link", "name"])
def test_an_odd_thing_in_the_ledger_does_not_end_the_audit(shop: Workspace, odd: str) -> None:
    place = edit(shop, "two", "iteration: 0", "iteration: 1")
    ledger = shop.folder / "ledger"
    if odd == "folder":
        (ledger / "WI-20260101-009.jsonl").mkdir()
    elif odd == "link":
        (ledger / "WI-20260101-009.jsonl").symlink_to("nowhere")
    else:
        shutil.copy(chain_of(shop, "one"), ledger / "WI-20260101-009 (copy).jsonl")
    assert ("error", "tampered", place) in findings_in(shop)


def test_the_command_says_what_was_found_and_fails_for_errors_only(
    shop: Workspace, donewhen: Callable[..., Any]
) -> None:
    done = donewhen(["audit", "--json"], shop.root)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"], answer["data"]["clean"], answer["findings"]) == (0, True, True, [])
    assert [finding["code"] for finding in answer["data"]["warnings"]] == ["anchor_absent"]
    edit(shop, "one", "reward_last_score: 0", "reward_last_score: 100")
    done = donewhen(["audit", "--json"], shop.root)
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"], answer["data"]["clean"]) == (1, False, False)
    assert [finding["code"] for finding in answer["findings"]] == ["tampered"]


@pytest.mark.parametrize("attributes", ["", "* text=auto eol=crlf\n"], ids=["plain", "line ends turned"])
def test_a_fresh_clone_on_another_path_with_other_times_is_clean(
    shop: Workspace, tmp_path: Path, git: Git, attributes: str
) -> None:
    if attributes:
        (shop.root / ".gitattributes").write_text(attributes)
        git(shop.root, "add", "-A")
        git(shop.root, "commit", "-qm", "attributes")
    other = tmp_path / "somewhere" / "else"
    git(tmp_path, "clone", "-q", str(shop.root), str(other))
    for path in other.rglob("*"):
        if ".git" not in path.parts:
            os.utime(path, (1, 1))
    found = audit_workspace(find_workspace(other))
    assert [(finding.severity, str(finding.code)) for finding in found.findings] == [("warning", "anchor_absent")]
    assert (found.jobs, found.chains, found.entries, found.evidence) == (2, 3, 5, 6)


def test_a_chain_of_a_newer_version_is_not_called_broken(shop: Workspace) -> None:
    path, job = chain_of(shop, "one"), shop.job("one")
    line = json.dumps({"v": 99, "seq": 9, "mood": "good"}).encode() + b"\n"
    path.write_bytes(path.read_bytes() + line)
    number = len(path.read_bytes().splitlines())
    assert findings_in(shop) == [("error", "other_version", f"{shop.where(path)}:{number}")]
    assert [problem.code for problem in survey_jobs(shop).problems] == ["other_version"]
    text = f"<promise>{job.id}-DONE</promise>\nreceipt: sha256:{'0' * 64}"
    check = verify_promise(shop, text, Policy())
    assert (check.real, "format 99" in check.why) == (False, True)
    assert path.read_bytes().endswith(line)


@pytest.mark.parametrize("broken", [False, True])
def test_a_broken_record_costs_no_iteration(shop: Workspace, broken: bool) -> None:
    path = chain_of(shop, "one")
    assert start_job(shop, "one", ME.by).started
    if broken:
        first, rest = path.read_bytes().split(b"\n", 1)
        path.write_bytes(first.replace(b'"how":"agreed"', b'"how":"agrees"') + b"\n" + rest)
    result = complete(shop, "one", ME.by)
    assert not result.done
    assert result.evaluation is not None
    assert ("record_broken" in {reason.code for reason in result.evaluation.reasons}) is broken
    assert shop.job("one").iteration == (0 if broken else 1)
