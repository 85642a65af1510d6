"""What is attested about a job, and when nothing is."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, CHECKED, JUDGED, WRITTEN, Court

from donewhen import __version__
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import seals_in
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.receipts.attestation import PREDICATE, STATEMENT, AttestationError, Claims, statement_of, subjects_of
from donewhen.jobs.receipts.attesting import attest_job
from lean_python import lean_python
from sentences import assert_sentences

Make = Callable[..., Any]


def refused(bench: Any, job: Job) -> AttestationError:
    with pytest.raises(AttestationError) as caught:
        attest_job(bench.workspace, job.id)
    assert caught.value.next_step
    assert caught.value.exit_code == 1
    return caught.value


def predicate(bench: Any, job: Job) -> dict[str, Any]:
    found: dict[str, Any] = attest_job(bench.workspace, job.id)["predicate"]
    return found


@pytest.fixture
def court(repository: Path, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Court:
    return Court(repository, git, monkeypatch)


# What is said


def test_a_statement_names_the_outputs_by_content_and_repeats_the_promise(bench: Any) -> None:
    job = bench.done()
    found = attest_job(bench.workspace, job.id)
    name = f"{job.path.parent.relative_to(bench.root)}/outputs/primary.md"
    content = (bench.root / name).read_bytes()
    assert (found["_type"], found["predicateType"]) == (STATEMENT, PREDICATE)
    assert found["subject"] == [{"name": name, "digest": {"sha256": hashlib.sha256(content).hexdigest()}}]
    said = found["predicate"]
    entries = bench.workspace.ledger.read(job.id).entries
    assert said["promise"] == f"<promise>{job.id}-DONE</promise>"
    assert said["receipt"] == entries[-1].hash == said["chain"][-1]["hash"]
    assert [entry["seq"] for entry in said["chain"]] == list(range(1, len(entries) + 1))
    assert (said["job"], said["title"]) == (job.id, "Parser")
    assert said["project"] == bench.workspace.project().id
    assert said["made_by"] == {"name": "donewhen", "version": __version__}
    assert said["approvers"] == {"ci": False, "keys": []}
    assert said["completed"]["score"] == entries[-1].data["score"]
    assert set(said["completed"]["gates"]) == {"agreement", "budget", "dependency", "truth", "reward"}
    assert said["completed"]["by"] == {"name": "bot", "kind": "agent"}


def test_the_contract_is_told_with_who_agreed_and_how(bench: Any) -> None:
    job = bench.done()
    said = predicate(bench, job)["contract"]
    first = bench.workspace.ledger.read(job.id).entries[0]
    assert said["terms"] == first.data["terms"]
    assert said["hash"] == first.data["hash"]
    assert said["agreed"] == {"at": first.at, "by": {"name": "ada", "kind": "person"}, "entry": first.hash}
    assert said["changed"] == []


def test_a_contract_that_was_decided_otherwise_or_tightened_says_by_which_entry(bench: Any) -> None:
    job = bench.job()
    decide(bench.workspace, job, Decision("target", "enough", 60), ADA)
    decide(bench.workspace, job, Decision("target", "less", 10), Approval(Actor("bot")))
    bench.edit(bench.read(job), "max_iterations: 3", "max_iterations: 2")
    bench.write(job)
    assert bench.complete(job).done
    said = predicate(bench, job)["contract"]
    assert (said["terms"]["reward_target"], said["terms"]["max_iterations"]) == (60, 2)
    assert said["agreed"]["by"]["kind"] == "person"
    types = {entry.hash: (entry.type, entry.by.kind) for entry in bench.workspace.ledger.read(job.id).entries}
    assert [types[change["entry"]] for change in said["changed"]] == [("decided", "person"), ("agreed", "agent")]


def test_a_new_agreement_begins_a_new_count_of_changes(bench: Any) -> None:
    job = bench.job()
    decide(bench.workspace, job, Decision("target", "enough", 60), ADA)
    bench.edit(bench.read(job), "The result is written down.", "The result is put down.")
    agree(bench.workspace, agreement_proposals(bench.workspace, [bench.read(job)])[1], ADA)
    bench.write(job)
    assert bench.complete(job).done
    assert predicate(bench, job)["contract"]["changed"] == []


def test_the_seals_after_each_entry_end_with_the_one_that_holds(bench: Any) -> None:
    job = bench.done()
    entries = bench.workspace.ledger.read(job.id).entries
    seals = list(seals_in(job.id, entries, Policy()))
    assert len(seals) == len(entries)
    assert all(seal is not None and seal.entry == entries[0] for seal in seals)


def test_a_command_is_told_with_its_exit_code_its_tests_and_the_hash_of_its_evidence(bench: Any) -> None:
    (bench.root / "test_it.py").write_text("def test_one():\n    pass\n\n\ndef test_two():\n    pass\n")
    bench.git(bench.root, "add", "-A")
    command = f"{lean_python()} -m pytest -q -p no:cacheprovider test_it.py"
    job = bench.done(criteria=["It is prose."], commands=[command])
    said = predicate(bench, job)
    *_, run = (entry for entry in bench.workspace.ledger.read(job.id).entries if entry.data.get("what") == "command")
    (verification,) = said["verification"]
    assert verification["command"] == command
    assert verification["shown"] == {
        "how": "verified",
        "what": "command",
        "entry": run.hash,
        "at": run.at,
        "command": command,
        "exit_code": 0,
        "tests": {"formats": ["junit"], "passed": 2, "failed": 0, "skipped": 0},
        "evidence": run.data["record"],
    }
    assert said["criteria"] == [
        {
            "id": "AC-1",
            "text": "It is prose.",
            "check": None,
            "shown": {"how": "verified", "what": "verification", "entries": [run.hash]},
        }
    ]


def test_a_file_that_the_gate_looked_at_is_verified(bench: Any) -> None:
    (criterion,) = predicate(bench, bench.done())["criteria"]
    assert (criterion["id"], criterion["check"]) == ("AC-1", "file outputs/primary.md")
    assert (criterion["shown"]["how"], criterion["shown"]["what"]) == ("verified", "file")


def test_a_person_who_signed_off_is_named_and_an_agent_who_did_is_not(bench: Any) -> None:
    job = bench.job(criteria=["It reads well.\n  check: manual"])
    bench.write(job)
    sign_off(bench.workspace, bench.read(job), "AC-1", "I read it", ADA)
    sign_off(bench.workspace, bench.read(job), "AC-1", "me too", Approval(Actor("bot")))
    assert bench.complete(job).done
    (criterion,) = predicate(bench, job)["criteria"]
    assert criterion["shown"]["how"] == "signed_off"
    assert criterion["shown"]["by"] == {"name": "ada", "kind": "person"}


def test_a_judge_is_named_with_its_guidance_and_votes(court: Court) -> None:
    job = court.job(JUDGED)
    assert court.complete(job).done
    (criterion,) = predicate(court, job)["criteria"]
    shown = criterion["shown"]
    assert criterion["check"] == "judge reports"
    assert (shown["how"], shown["mission"], shown["model"], shown["guidance_step"]) == (
        "judged",
        "reports",
        "scripted/1",
        0,
    )
    assert shown["votes"] == {"pass": 3, "fail": 0, "malformed": 0}
    assert "reason" not in shown


def test_a_person_above_a_judge_is_named_instead_of_it(court: Court) -> None:
    court.votes = "ppf"
    job = court.job(JUDGED)
    court.complete(job)
    assert court.overrule(job, "pass").counts
    assert court.complete(job).done
    (criterion,) = predicate(court, job)["criteria"]
    assert (criterion["shown"]["how"], criterion["shown"]["by"]["name"]) == ("overruled", "ada")


def test_a_person_above_a_failing_check_is_named(court: Court) -> None:
    job = court.job(CHECKED, WRITTEN)
    court.write("check.sh", "exit 1\n")
    court.commit()
    assert not court.complete(job).done
    assert court.overrule(job, "pass").counts
    assert court.complete(job).done
    first, second = predicate(court, job)["criteria"]
    assert (first["shown"]["how"], first["shown"]["by"]["kind"]) == ("overruled", "person")
    assert second["shown"]["how"] == "verified"


def test_with_truth_switched_off_everything_is_asserted_whatever_was_run(bench: Any) -> None:
    job = bench.job(agreed=False, commands=["true"], criteria=["Prose.", "More.\n  check: file outputs/primary.md"])
    bench.edit(job, "truth_mode: strict", "truth_mode: off")
    bench.agree(job)
    bench.start(job)
    bench.write(job)
    assert bench.complete(job).done
    said = predicate(bench, job)
    assert [item["shown"] for item in (*said["criteria"], *said["verification"])] == [{"how": "asserted"}] * 3
    assert said["completed"]["truth_mode"] == "off"


def test_a_title_is_cleaned_and_cut(bench: Any) -> None:
    job = bench.done("Par\u202eser \x1b[31mred " + "x" * 300)
    said = predicate(bench, job)["title"]
    assert said.startswith("Parser red xxx")
    assert len(said) == 200


def test_a_criterion_that_was_added_after_the_completion_is_not_attested(bench: Any) -> None:
    job = bench.done()
    bench.edit(job, "- AC-1:", "- AC-9: Something more.\n- AC-1:")
    assert [criterion["id"] for criterion in predicate(bench, job)["criteria"]] == ["AC-1"]


# The commit


def test_a_commit_that_has_outputs_and_ledger_is_a_subject(bench: Any) -> None:
    job = bench.done()
    assert len(attest_job(bench.workspace, job.id)["subject"]) == 1
    bench.git(bench.root, "add", "-A")
    bench.git(bench.root, "commit", "-qm", "done")
    head = bench.git(bench.root, "rev-parse", "HEAD").strip()
    commit = {"name": "git commit", "digest": {"gitCommit": head}}
    assert attest_job(bench.workspace, job.id)["subject"][1:] == [commit]
    (bench.root / "elsewhere.txt").write_text("not this job's")
    assert attest_job(bench.workspace, job.id)["subject"][1:] == [commit]


@pytest.mark.parametrize("missing", ["outputs", "ledger"])
def test_a_commit_that_lacks_a_part_is_no_subject(bench: Any, missing: str) -> None:
    job = bench.done()
    (bench.root / ".gitignore").write_text("outputs/\n" if missing == "outputs" else ".donewhen/\n")
    bench.git(bench.root, "add", "-A")
    bench.git(bench.root, "commit", "-qm", "part of it")
    assert len(attest_job(bench.workspace, job.id)["subject"]) == 1


def test_an_output_with_a_pattern_in_its_name_is_looked_up_by_its_name(bench: Any) -> None:
    job = bench.job(outputs=["outputs/[a]*.md"], criteria=["There.\n  check: file outputs/[a]*.md"])
    bench.write(job, name="outputs/[a]*.md")
    assert bench.complete(job).done
    bench.git(bench.root, "add", "-A")
    bench.git(bench.root, "commit", "-qm", "done")
    assert [item["name"].rpartition("/")[2] for item in attest_job(bench.workspace, job.id)["subject"]] == [
        "[a]*.md",
        "git commit",
    ]


# When nothing is attested


def test_a_job_that_is_not_done_is_not_attested(bench: Any) -> None:
    job = bench.job()
    assert refused(bench, job).finding == FindingCode.NOT_DONE
    bench.complete(job)
    assert refused(bench, job).finding == FindingCode.NOT_DONE


def test_a_job_that_was_started_again_is_not_attested(bench: Any) -> None:
    job = bench.done()
    bench.start(job)
    assert refused(bench, job).finding == "not_done"
    assert_sentences(refused(bench, job).message)


def test_a_job_with_an_output_that_changed_is_not_attested(bench: Any) -> None:
    job = bench.done()
    bench.write(job, "another\n")
    error = refused(bench, job)
    assert error.finding == FindingCode.OUTPUT_CHANGED
    assert "outputs/primary.md" in error.message
    (job.folder / "outputs" / "primary.md").unlink()
    assert refused(bench, job).finding == FindingCode.OUTPUT_CHANGED
    bench.write(job)
    assert attest_job(bench.workspace, job.id)


def test_many_changed_outputs_are_counted(bench: Any) -> None:
    job = bench.job(
        outputs=[f"outputs/{number}.md" for number in range(8)], criteria=["There is one.\n  check: file outputs/1.md"]
    )
    for number in range(8):
        bench.write(job, name=f"outputs/{number}.md")
    assert bench.complete(job).done
    for number in range(8):
        bench.write(job, "x", name=f"outputs/{number}.md")
    assert "and 3 more" in refused(bench, job).message


def test_a_job_that_was_built_on_something_else_is_not_attested(bench: Any) -> None:
    first = bench.done()
    second = bench.done("Printer", depends_on=[first.id])
    bench.write(first, "another\n")
    assert refused(bench, second).finding == FindingCode.DONE_INVALID


@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_chain_that_was_edited_is_not_attested(bench: Any, number: int) -> None:
    job = bench.done()
    path = bench.workspace.folder / "ledger" / f"{job.id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"kind":"', b'"kind": "', 1)
    path.write_bytes(b"".join(lines))
    assert refused(bench, job).finding == FindingCode.CHAIN_BROKEN


def test_a_contract_that_was_loosened_since_is_not_attested(bench: Any) -> None:
    job = bench.done()
    bench.edit(job, "reward_target: 80", "reward_target: 10")
    assert refused(bench, job).finding == FindingCode.VOIDED
    bench.edit(job, "reward_target: 10", "reward_target: 80")
    (bench.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    assert (refused(bench, job).finding, "project" in refused(bench, job).message) == ("voided", True)


def test_a_field_that_was_typed_is_not_attested(bench: Any) -> None:
    job = bench.done()
    score = job.document.fields["reward_last_score"]
    bench.edit(job, f"reward_last_score: {score}", "reward_last_score: 100")
    assert refused(bench, job).finding == FindingCode.TAMPERED


@pytest.mark.parametrize("outputs", [None, {}, {"a": "missing"}, {"a": "folder"}, {"a": None}, {"a": "sha256:0"}])
def test_without_files_there_is_nothing_to_attest(make_entry: Make, outputs: Any) -> None:
    with pytest.raises(AttestationError) as caught:
        subjects_of(make_entry("completed", outputs=outputs), None)
    assert caught.value.finding == FindingCode.NO_SUBJECT


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"gates": {}, "score": 90},
        {"gates": {"truth": ["criterion_failed"]}, "score": 90},
        {"gates": {"truth": []}},
    ],
)
def test_a_completion_with_a_closed_gate_or_without_a_score_is_none(make_entry: Make, data: dict[str, Any]) -> None:
    claims = Claims("WI-20260214-001", "T", "PJ-20260214-001", (), Policy(), "1")
    done = make_entry("completed", writes={"status": ["in_progress", "done"]}, **data)
    with pytest.raises(AttestationError) as caught:
        statement_of(claims, [done])
    assert caught.value.finding == FindingCode.NOT_DONE


# What stays at home


def appended(bench: Any, job: Job, **data: Any) -> Entry:
    entry: Entry = bench.workspace.ledger.append(job.id, "evaluated", data, Actor("bot"))
    return entry


@pytest.mark.parametrize("place", ["value", "name"])
def test_a_record_with_a_secret_in_it_is_not_given_away(bench: Any, place: str) -> None:
    job = bench.done()
    token = "ghp_" + "a1B2" * 9
    appended(bench, job, **({"told": f"it said {token}"} if place == "value" else {token: 1}))
    error = refused(bench, job)
    assert error.finding == FindingCode.PRIVATE
    assert token not in str(error)


def test_a_title_with_a_secret_in_it_is_not_given_away(bench: Any) -> None:
    assert refused(bench, bench.done("Use ghp_" + "a1B2" * 9)).finding == FindingCode.PRIVATE


def test_the_value_of_a_variable_is_not_given_away(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.done()
    appended(bench, job, told="the answer is plum-kettle-nine")
    assert attest_job(bench.workspace, job.id)
    monkeypatch.setenv("SHOP_TOKEN", "plum-kettle-nine")
    assert refused(bench, job).finding == FindingCode.PRIVATE


def test_a_path_of_this_machine_is_not_given_away_unless_it_was_agreed_to(bench: Any) -> None:
    command = f"sh {bench.root}/check.sh"
    (bench.root / "check.sh").write_text("exit 0\n")
    job = bench.done(criteria=[f"It runs.\n  check: run {command}"])
    assert predicate(bench, job)["criteria"][0]["shown"]["command"] == command
    appended(bench, job, told=f"{bench.root}/notes.md can't be read")
    assert (refused(bench, job).finding, "path" in refused(bench, job).message) == ("private", True)


def test_an_honest_statement_has_no_path_and_no_output_of_this_machine(bench: Any) -> None:
    (bench.root / "check.sh").write_text("echo secretly-said; env\n")
    job = bench.done(criteria=["It runs.\n  check: run sh check.sh"])
    text = json.dumps(attest_job(bench.workspace, job.id))
    assert str(bench.root) not in text
    assert "secretly-said" not in text
    assert os.environ["PATH"] not in text
    assert str(Path.home()) not in text


def test_a_judge_that_can_not_be_asked_tells_no_path_of_this_machine(court: Court) -> None:
    job = court.job(JUDGED)
    (court.root / "missions" / "reports" / "mission.toml").write_text("= nonsense")
    explanation = court.ask(job).entry.data["told"]
    assert explanation
    assert str(court.root) not in explanation


# The page


def names(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {*value, *(name for below in value.values() for name in names(below))}
    return {name for below in value for name in names(below)} if isinstance(value, list) else set()


def test_every_field_stands_on_the_page(court: Court) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference-attestation.md").read_text(encoding="utf-8")
    court.votes = "ppp"
    judged = court.job(JUDGED, CHECKED)
    assert court.complete(judged).done
    said = predicate(court, judged)
    said["contract"].pop("terms")
    said.pop("chain")
    for criterion in said["criteria"]:
        criterion["shown"].pop("votes", None)
    inside = {*names(said), "votes", "entries", "signed_off", "overruled", "asserted"}
    gates = {*said["completed"]["gates"]}
    assert {gate for gate in inside - gates if f"`{gate}`" not in page} == set()
    assert f"`{PREDICATE}`" in page
