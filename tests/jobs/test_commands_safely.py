"""What a command gets to see, what it leaves behind, and that no secret is written down."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.evidence.commands import (
    EvidenceRun,
    evidence_store,
    record_file_check,
    run_as_evidence,
    run_conditions,
)
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Git = Callable[..., str]
AGENT = Actor("somebody")
TOKEN = "gh" + "p_" + "a1B2c3D4" * 5


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


def environment_of(place: Place) -> dict[str, str]:
    ran = place.python(f"import json, os; json.dump(dict(os.environ), open('{place.beside}/env', 'w'))", again=True)
    assert ran.passed
    found = json.loads((place.beside / "env").read_text())
    assert isinstance(found, dict)
    return found


HIDDEN = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "GITHUB_TOKEN", "PYTEST_ADDOPTS", "GIT_DIR")


def test_a_command_sees_a_small_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*HIDDEN, "WANTED"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("PATH", f"{place.root}:.:{os.environ['PATH']}")
    seen = environment_of(place)
    assert not {*HIDDEN, "WANTED"} & set(seen)
    assert {str(place.root), "."}.isdisjoint(seen["PATH"].split(":"))
    assert seen["HOME"] == os.environ["HOME"]
    place.settings('[jobs]\npass_env = ["WANTED", "GITHUB_TOKEN"]\n')
    wanted = environment_of(place)
    assert (wanted["WANTED"], wanted["GITHUB_TOKEN"]) == ("/nowhere", "/nowhere")
    assert "LD_PRELOAD" not in wanted


@pytest.mark.parametrize("name", ["LANG", "TZ", "LC_ALL", "LANGUAGE", "WANTED"])
def test_what_changes_how_programs_speak_changes_the_key(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.settings('[jobs]\npass_env = ["WANTED"]\n')
    keys = set()
    for value in ("one", "two", None):
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        now = run_conditions(place.workspace, place.job, ["sh"])
        keys.add(now.parts.key)
        assert (name in now.fingerprint) == (value is not None)
    assert len(keys) == 3


@pytest.mark.parametrize("name", ["USER", "VIRTUAL_ENV", "GITHUB_TOKEN", "WHATEVER", "PATH", "TERM"])
def test_where_things_are_installed_does_not_change_the_key(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = run_conditions(place.workspace, place.job, ["sh"]).parts
    monkeypatch.setenv(name, f"{os.environ['PATH']}:/opt/somewhere/else")
    assert run_conditions(place.workspace, place.job, ["sh"]).parts == before


def test_the_value_of_a_variable_that_was_passed_on_is_not_written_down(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.settings('[jobs]\npass_env = ["DEPLOY_KEY", "PLAIN"]\n')
    monkeypatch.setenv("DEPLOY_KEY", "plain-looking-value")
    monkeypatch.setenv("PLAIN", "something-plain")
    ran = place.sh("echo $DEPLOY_KEY; test $PLAIN = something-plain")
    assert ran.passed
    assert ran.output == "[redacted]\n"
    assert {"DEPLOY_KEY", "PLAIN"} <= set(place.record(ran)["environment"])
    assert b"plain-looking-value" not in place.written()
    assert (
        b"something-plain"
        not in evidence_store(place.workspace).get_json(ran.entry.data["record"])["environment"]["PLAIN"].encode()
    )


def leaks(place: Place) -> dict[str, Callable[[], object]]:
    """Ways for a secret to get into what is written down."""
    reports = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(open('report').read())"
    (place.root / "secret").write_text(f"{TOKEN} {os.environ['DEPLOY_KEY']}")
    (place.root / "report").write_text(f"<testsuite><testcase name='t[{TOKEN}]'/></testsuite>")
    (place.root / "data.json").write_text(json.dumps(f"{TOKEN} {os.environ['DEPLOY_KEY']}"))
    (place.root / "schema.json").write_text('{"type": "integer"}')
    check = parse_check("file /data.json schema /schema.json", "here")
    return {
        "output": lambda: place.sh("cat secret; echo; cat secret >&2; exit 1"),
        "token in the command": lambda: place.sh(f"echo {TOKEN} >/dev/null"),
        "value in the command": lambda: place.sh(f"echo {os.environ['DEPLOY_KEY']} >/dev/null"),
        "id of a test": lambda: place.python(reports, "{junit}"),
        "look": lambda: record_file_check(place.workspace, place.job, check, "file /data.json", AGENT, criterion=None),
        "evidence of a look": lambda: record_file_check(
            place.workspace, place.job, check, f"file {TOKEN}", AGENT, criterion=None
        ),
    }


@pytest.mark.parametrize(
    "way",
    ["output", "token in the command", "value in the command", "id of a test", "look", "evidence of a look"],
)
def test_no_secret_is_ever_written_down(place: Place, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_KEY", "plain-looking-value")
    leaks(place)[way]()
    assert len(place.entries()) == 1
    written = place.written()
    assert b"redacted" in written
    assert TOKEN.encode() not in written
    assert b"plain-looking-value" not in written


def test_a_variable_of_the_caller_changes_no_test_and_hides_no_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.root / "report").write_text("<testsuite><testcase name='test_one'/><testcase name='test_two'/></testsuite>")
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(open('report').read())"
    before = place.python(script, "{junit}")
    monkeypatch.setenv("MY_KEY", "test_two")
    monkeypatch.setenv("MY_TOKEN", "pathlib")
    assert place.python(script, "{junit}").reused
    after = place.python(script, "{junit}", again=True)
    stored = [
        evidence_store(place.workspace).get_json(place.record(ran)["report"]["outcomes"]) for ran in (before, after)
    ]
    assert stored[0] == stored[1] == {"test_one": "passed", "test_two": "passed"}


def test_a_command_with_a_secret_in_it_is_still_found_again(place: Place) -> None:
    script = f"echo {TOKEN} > /dev/null; {place.counted()}"
    place.sh(script)
    assert place.sh(script).reused
    assert not place.sh(script.replace(TOKEN, TOKEN[:-1] + "x")).reused
    assert place.count == 2


@pytest.mark.parametrize("at", [-20, -5, 0])
@pytest.mark.parametrize("end", ["head", "tail"])
def test_where_a_long_output_was_cut_no_half_of_a_secret_is_left(place: Place, end: str, at: int) -> None:
    head, tail = 16 * 1024, 112 * 1024
    before = f"first\n{'x' * (head - 6 + at)}{TOKEN}" if end == "head" else "first\n"
    after = f"{TOKEN}{'z' * (tail - 6 + at - len(TOKEN) // 2)}\nlast\n" if end == "tail" else "\nlast\n"
    (place.root / "big").write_text(f"{before}\n{'y ' * 200_000}\n{after}")
    ran = place.sh("cat big")
    assert_sentences(ran.output)
    assert ran.output.startswith("first\n")
    assert ran.output.endswith("last\n")
    assert not any(TOKEN[start : start + 6].encode() in place.written() for start in range(4, len(TOKEN) - 6))


def test_where_a_long_output_was_cut_no_half_of_a_key_is_left(place: Place) -> None:
    lines = "\n".join(f"MIIEowIBAAKCAQEA{number:04}" for number in range(6000))
    (place.root / "big").write_text(
        f"{'x' * 20_000}\n-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\nlast\n"
    )
    ran = place.sh("cat big")
    assert_sentences(ran.output)
    assert ran.output.endswith("last\n")
    assert b"MIIEowIBAAKCAQEA" not in place.written()


def test_a_long_line_is_kept_without_taking_long(place: Place) -> None:
    ran = place.python("print('a' * 120_000)")
    assert place.output(ran) == "a" * 120_000 + "\n"


def test_output_that_is_no_text_is_kept_as_far_as_it_is(place: Place) -> None:
    ran = place.sh("printf 'a\\377b'")
    assert place.output(ran) == "a\ufffdb"


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_a_command_leaves_behind_does_not_survive_it(place: Place) -> None:
    ran = place.sh(f"sleep 100 & echo $! > {place.beside}/pid")
    assert ran.passed
    assert not alive(int((place.beside / "pid").read_text()))
