"""Evidence that the gate makes itself: real commands, and what is written down about them."""

from __future__ import annotations

import os
import platform
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.inputs import input_manifest
from donewhen.jobs.evidence.commands import (
    EvidenceRun,
    evidence_store,
    find_fresh_run,
    newest_run,
    record_file_check,
    reports_tests,
    run_as_evidence,
    run_conditions,
)
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Git = Callable[..., str]
AGENT = Actor("somebody")


class Place:
    """A repository with one job whose verification is ``sh check.sh``, and a folder beside it that is no input."""

    def __init__(self, root: Path, git: Git) -> None:
        self.root = root
        self.beside = root.parent / "beside"
        self.beside.mkdir()
        self.workspace: Workspace = create_project(root, "Demo")
        self.job: Job = add_job(self.workspace, "First", criteria=["It works"], commands=["sh check.sh"])
        (root / "check.sh").write_text("exit 0\n")
        git(root, "add", "--all")

    def sh(self, script: str, **options: Any) -> EvidenceRun:
        return run_as_evidence(self.workspace, self.job, ["sh", "-c", script], AGENT, **options)

    def python(self, script: str, *arguments: str, **options: Any) -> EvidenceRun:
        return run_as_evidence(self.workspace, self.job, [sys.executable, "-c", script, *arguments], AGENT, **options)

    def entries(self) -> tuple[Entry, ...]:
        return self.workspace.ledger.read(self.job.id).entries

    def record(self, ran: EvidenceRun) -> dict[str, Any]:
        found = evidence_store(self.workspace).get_json(ran.entry.data["record"])
        assert isinstance(found, dict)
        return found

    def output(self, ran: EvidenceRun) -> str:
        content = evidence_store(self.workspace).get(ran.entry.data["output"])
        assert content is not None
        return content.decode()

    def written(self) -> bytes:
        """Everything that was written down."""
        return b"\n".join(path.read_bytes() for path in (self.root / ".donewhen").rglob("*") if path.is_file())

    def counted(self, exit_code: int = 0) -> str:
        """A script that leaves a mark for each time it really ran."""
        return f"echo ran >> {self.beside}/count; exit {exit_code}"

    @property
    def count(self) -> int:
        return len((self.beside / "count").read_text().split())

    def settings(self, text: str) -> None:
        (self.root / "donewhen.toml").write_text(text)


@pytest.fixture
def place(repository: Path, git: Git) -> Place:
    return Place(repository, git)


def test_what_was_seen_is_written_down(place: Place) -> None:
    inputs = input_manifest(place.workspace, place.job)
    ran = place.sh("echo to stdout; echo to stderr >&2", criterion="AC-1")
    assert (ran.passed, ran.reused, ran.output) == (True, False, "to stdout\nto stderr\n")
    assert ran.entry == place.entries()[-1]
    data = ran.entry.data
    assert ran.entry.type == "ran"
    assert ran.entry.by == AGENT
    assert (data["what"], data["criterion"], data["asked_for"], data["settled"]) == ("command", "AC-1", False, True)
    assert (data["ending"], data["exit_code"], data["passed"]) == ("exited", 0, True)
    assert data["evidence"] == "sh -c 'echo to stdout; echo to stderr >&2'"
    assert "report" not in data
    assert place.output(ran) == ran.output
    record = place.record(ran)
    assert record["schema"] == "donewhen/evidence/v1"
    assert record["job"] == place.job.id
    assert record["argv"] == ["sh", "-c", "echo to stdout; echo to stderr >&2"]
    assert record["executable"]["path"].endswith("/sh")
    assert record["environment"]["platform"] == f"{sys.platform} {platform.machine()}"
    assert record["inputs"] == {"manifest": data["manifest"], "declared": False}
    assert evidence_store(place.workspace).get_json(data["manifest"]) == dict(inputs.files)
    assert (record["changed_meanwhile"], record["report"], record["report_problem"]) == ([], None, None)
    assert (record["ending"], record["exit_code"], record["output"]) == ("exited", 0, data["output"])
    assert record["started_at"].endswith("Z")
    assert record["seconds"] >= 0


def test_a_command_of_the_contract_is_marked_as_asked_for(place: Place) -> None:
    assert run_as_evidence(place.workspace, place.job, ["sh", "check.sh"], AGENT).entry.data["asked_for"] is True


@pytest.mark.parametrize(
    ("script", "exit_code"), [("exit 1", 1), ("exit 77", 77), ("kill -9 $$", -9), ("kill -TERM $$", -15)]
)
def test_only_exit_status_zero_passes(place: Place, script: str, exit_code: int) -> None:
    ran = place.sh(script)
    assert not ran.passed
    assert (ran.entry.data["ending"], ran.entry.data["exit_code"]) == ("exited", exit_code)
    assert ran.entry.data["settled"] is True


def test_a_command_that_takes_too_long_is_ended_and_does_not_pass(place: Place) -> None:
    ran = place.sh("echo begun; exec sleep 60", timeout=0.3)
    assert ran.entry.data["ending"] == "timed_out"
    assert not ran.passed
    place.settings("[jobs]\ncommand_timeout = 0.3\n")
    assert place.sh("exec sleep 61").entry.data["ending"] == "timed_out"


def test_a_command_that_can_not_be_found_leaves_no_record(place: Place) -> None:
    for argv in (["no-such-program"], ["./missing"], ["./jobs"]):
        with pytest.raises(CommandNotRunnableError):
            run_as_evidence(place.workspace, place.job, argv, AGENT)
    assert place.entries() == ()


def test_a_command_that_can_not_be_written_down_is_refused(place: Place) -> None:
    with pytest.raises(DonewhenError):
        run_as_evidence(place.workspace, place.job, ["echo", os.fsdecode(b"\xff")], AGENT)
    assert place.entries() == ()


def test_it_runs_in_the_project_and_reads_nothing(place: Place) -> None:
    assert place.sh("pwd; cat").output == f"{place.root.resolve()}\n"


def test_inputs_that_change_while_it_runs_make_it_stale(place: Place) -> None:
    script = f"echo more >> check.sh; {place.counted()}"
    ran = place.sh(script)
    assert ran.passed
    assert ran.entry.data["settled"] is False
    assert place.record(ran)["changed_meanwhile"] == ["check.sh"]
    assert find_fresh_run(place.entries(), ran.entry.data["evidence"], ran.entry.data["key"]) is None
    assert not place.sh(script).reused
    assert place.count == 2


def test_a_file_that_comes_and_goes_while_it_runs_is_named_too(place: Place, git: Git) -> None:
    (place.root / "gone.txt").write_text("x")
    git(place.root, "add", "gone.txt")
    ran = place.sh("rm gone.txt; git -c core.fsmonitor= rm -q --cached check.sh")
    assert ran.passed
    assert place.record(ran)["changed_meanwhile"] == ["check.sh", "gone.txt"]


def test_what_passed_and_is_fresh_is_not_run_again(place: Place) -> None:
    first, second = place.sh(place.counted()), place.sh(place.counted())
    assert (first.reused, second.reused) == (False, True)
    assert second.passed
    assert second.entry == first.entry
    assert place.count == 1
    assert len(place.entries()) == 1
    (place.root / "untracked.txt").write_text("x")
    os.utime(place.root / "check.sh", (1, 1))
    assert place.sh(place.counted()).reused


def test_it_runs_again_when_something_changed_when_it_is_told_to_or_when_it_failed(place: Place) -> None:
    place.sh(place.counted())
    assert not place.sh(place.counted(), again=True).reused
    (place.root / "check.sh").write_text("exit 0 # now\n")
    assert not place.sh(place.counted()).reused
    assert place.count == 3
    for _ in range(2):
        assert not place.sh(place.counted(1)).reused
    assert place.count == 5


def test_an_older_run_that_would_be_fresh_again_does_not_count_after_a_newer_one(place: Place) -> None:
    place.sh(place.counted())
    (place.root / "check.sh").write_text("exit 1\n")
    place.sh(place.counted())
    (place.root / "check.sh").write_text("exit 0\n")
    assert not place.sh(place.counted()).reused
    assert place.count == 3


def test_a_failure_after_a_success_is_what_counts(place: Place) -> None:
    flag = place.beside / "flag"
    script = f"test ! -e {flag}"
    assert place.sh(script).passed
    flag.touch()
    assert not place.sh(script, again=True).passed
    assert not place.sh(script).reused


def test_the_newest_record_of_a_command_is_found_among_others(place: Place) -> None:
    one, other = place.sh("exit 1"), place.sh("exit 2")
    again = place.sh("exit 1")
    assert newest_run(place.entries(), one.entry.data["evidence"]) == again.entry
    assert newest_run(place.entries(), other.entry.data["evidence"]) == other.entry
    assert newest_run(place.entries(), "something else") is None
    assert find_fresh_run(place.entries(), "something else", "key") is None


PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


def test_pytest_reports_its_tests_without_being_asked_to(place: Place) -> None:
    (place.root / "test_it.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    ran = run_as_evidence(place.workspace, place.job, PYTEST, AGENT)
    assert ran.passed
    assert ran.entry.data["report"] == {"formats": ["junit"], "passed": 2, "failed": 0, "skipped": 0}
    record = place.record(ran)
    assert record["argv"] == PYTEST
    assert evidence_store(place.workspace).get_json(record["report"]["outcomes"]) == {
        "test_it::test_one": "passed",
        "test_it::test_two": "passed",
    }
    assert not list(place.root.rglob("junit.xml"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import os\ndef test_one(): os._exit(0)\n", id="ends the process"),
        pytest.param("import sys\nsys.exit(0)\n", id="exits while it is collected"),
        pytest.param("import pytest\n@pytest.mark.skip\ndef test_one(): pass\n", id="skips all"),
    ],
)
def test_pytest_that_does_not_come_to_report_a_passed_test_does_not_pass(place: Place, text: str) -> None:
    (place.root / "test_it.py").write_text(text)
    assert not run_as_evidence(place.workspace, place.job, PYTEST, AGENT).passed


def test_pytest_that_writes_its_report_elsewhere_may_do_so(place: Place) -> None:
    (place.root / "test_it.py").write_text("def test_one(): pass\n")
    ran = run_as_evidence(place.workspace, place.job, [*PYTEST, f"--junitxml={place.beside}/own.xml"], AGENT)
    assert ran.passed
    assert (place.beside / "own.xml").is_file()


def test_options_that_were_passed_on_to_pytest_still_reach_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.settings('[jobs]\npass_env = ["PYTEST_ADDOPTS"]\n')
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k test_one")
    (place.root / "test_it.py").write_text("def test_one(): pass\ndef test_two(): assert 0\n")
    ran = run_as_evidence(place.workspace, place.job, PYTEST, AGENT)
    assert ran.entry.data["report"]["passed"] == 1
    assert ran.passed


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest -q", True),
        (".venv/bin/py.test", True),
        ("python3.11 -m pytest", True),
        ("go-junit --out {junit}", True),
        ("tool --into={report_dir}", True),
        ("tool {junit_dir}", True),
        ("python -m unittest", True),
        ("python -B -m pytest -q", True),
        ("env A=1 python -m pytest", True),
        ("python -c pytest", False),
        ("make test", False),
        ("pytest-watch", False),
    ],
)
def test_it_is_known_which_commands_report_their_tests(command: str, expected: bool) -> None:
    assert reports_tests(command.split()) is expected


REPORT = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text({text!r}); sys.exit({code})"
GOOD = "<testsuite><testcase name='a'/></testsuite>"
BAD = "<testsuite><testcase name='a'><failure/></testcase></testsuite>"


@pytest.mark.parametrize("where", ["{junit}", "{report_dir}/x.xml", "{junit_dir}/junit.xml"])
@pytest.mark.parametrize(
    ("text", "code", "passed"),
    [
        pytest.param(GOOD, 0, True, id="both good"),
        pytest.param(BAD, 0, False, id="only the exit status is good"),
        pytest.param(GOOD, 1, False, id="only the report is good"),
        pytest.param("<testsuite>", 0, False, id="torn report"),
        pytest.param("<testsuite/>", 0, False, id="empty report"),
    ],
)
def test_exit_status_and_report_must_both_be_good(place: Place, where: str, text: str, code: int, passed: bool) -> None:
    ran = place.python(REPORT.format(text=text, code=code), where)
    assert ran.passed is passed
    assert place.record(ran)["argv"][-1] == where
    assert (place.record(ran)["report_problem"] is None) == (text != "<testsuite>")


@pytest.mark.parametrize("where", ["{junit}", "--out={report_dir}"])
def test_a_report_that_was_asked_for_and_is_not_there_is_a_failure(place: Place, where: str) -> None:
    assert not place.python("pass", where).passed


def test_nobody_can_know_beforehand_where_the_report_will_be(place: Place) -> None:
    script = "import os, sys; print(sys.argv[1], oct(os.stat(sys.argv[1]).st_mode), os.listdir(sys.argv[1]))"
    shown = [place.python(script, "{report_dir}", again=True).output.split(None, 2) for _ in range(2)]
    assert len({folder for folder, _, _ in shown}) == 2
    for folder, mode, content in shown:
        assert stat.S_IMODE(int(mode, 8)) == 0o700
        assert content.strip() == "[]"
        assert not Path(folder).exists()


def test_the_program_s_place_is_written_down_without_the_name_of_the_account(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = place.beside / "tool"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("HOME", str(place.beside))
    assert (
        place.record(run_as_evidence(place.workspace, place.job, [str(script)], AGENT))["executable"]["path"]
        == "~/tool"
    )
    for home in ("/", str(place.beside)[:-1]):
        monkeypatch.setenv("HOME", home)
        again = run_as_evidence(place.workspace, place.job, [str(script)], AGENT, again=True)
        assert place.record(again)["executable"]["path"] == str(script)


def test_evidence_holds_in_a_clone_at_another_place(place: Place, git: Git, tmp_path: Path) -> None:
    ran = run_as_evidence(place.workspace, place.job, ["sh", "check.sh"], AGENT)
    git(place.root, "add", "--all")
    git(place.root, "commit", "-qm", "all")
    git(tmp_path, "clone", "-q", str(place.root), "clone")
    for path in (tmp_path / "clone").rglob("*.*"):
        os.utime(path, (1, 1))
    clone = Workspace((tmp_path / "clone").resolve(), "small")
    again = run_as_evidence(clone, clone.job(place.job.id), ["sh", "check.sh"], AGENT)
    assert again.reused
    assert again.entry == ran.entry
    assert evidence_store(clone).get_json(again.entry.data["record"]) == place.record(ran)


def test_given_inputs_are_not_looked_for_again(place: Place) -> None:
    inputs = input_manifest(place.workspace, place.job)
    (place.root / "check.sh").write_text("changed")
    assert run_conditions(place.workspace, place.job, ["sh"], inputs).inputs is inputs
    assert run_conditions(place.workspace, place.job, ["sh"]).parts.differing(
        run_conditions(place.workspace, place.job, ["sh"], inputs).parts._asdict()
    ) == ("inputs",)


def looked(place: Place, check: str = "/out.md") -> EvidenceRun:
    evidence = f"file {check}"
    return record_file_check(
        place.workspace, place.job, parse_check(evidence, "here"), evidence, AGENT, criterion="AC-1"
    )


def test_a_look_at_a_file_is_written_down_once_while_it_would_see_the_same(place: Place) -> None:
    missing = looked(place)
    assert (missing.passed, missing.reused) == (False, False)
    assert_sentences(missing.output)
    assert looked(place).reused
    (place.root / "out.md").write_text("done")
    found = looked(place)
    assert (found.passed, found.reused) == (True, False)
    assert {
        name: found.entry.data[name] for name in ("what", "evidence", "criterion", "told", "settled", "asked_for")
    } == {
        "what": "file",
        "evidence": "file /out.md",
        "criterion": "AC-1",
        "told": "4 bytes",
        "settled": True,
        "asked_for": False,
    }
    os.utime(place.root / "out.md", (1, 1))
    assert looked(place).entry == found.entry
    assert len(place.entries()) == 2


def test_a_look_depends_on_the_schema_too(place: Place) -> None:
    (place.root / "out.json").write_text("5")
    (place.root / "s.json").write_text('{"type": "integer"}')
    assert looked(place, "/out.json schema /s.json").passed
    (place.root / "s.json").write_text('{"type": "string"}')
    again = looked(place, "/out.json schema /s.json")
    assert not again.reused
    assert not again.passed


def test_a_look_at_a_pipe_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.root / "out.md")
    assert not looked(place).passed


def test_a_file_that_changes_while_it_is_looked_at_is_looked_at_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    import donewhen.jobs.evidence.commands as running

    real = running.check_file

    def meddled(*arguments: Any) -> Any:
        seen = real(*arguments)
        (place.root / "out.md").write_text("something else")
        return seen

    (place.root / "out.md").write_text("done")
    monkeypatch.setattr(running, "check_file", meddled)
    assert looked(place).entry.data["settled"] is False
    monkeypatch.setattr(running, "check_file", real)
    (place.root / "out.md").write_text("done")
    assert not looked(place).reused


def sealed(place: Place) -> Sequence[str]:
    return [f"{entry.type} {entry.data.get('how', '')}".strip() for entry in place.entries()]


def test_a_run_seals_what_was_added_to_the_contract(place: Place) -> None:
    for proposal in agreement_proposals(place.workspace, [place.job]):
        agree(place.workspace, proposal, Approval(Actor("me", "person")))
    place.job = place.workspace.job(place.job.id)
    place.sh("exit 0")
    assert sealed(place) == ["agreed agreed", "ran"]
    place.job.path.write_text(
        place.job.path.read_text().replace("- AC-1: It works", "- AC-1: It works\n- AC-2: Always")
    )
    place.sh("exit 0", again=True)
    assert sealed(place) == ["agreed agreed", "ran", "agreed tightened", "ran"]
    place.sh("exit 0", again=True)
    assert sealed(place)[-2:] == ["ran", "ran"]
