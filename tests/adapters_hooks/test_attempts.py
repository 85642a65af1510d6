"""How long an agent is held back, and what is remembered of it from one hook process to the next."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters import stop_attempts
from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.codex.dialect import CodexDialect
from donewhen.adapters.command_hooks import Dialect, HookKind, respond_to_event
from sentences import assert_sentences

CLAUDE, CODEX = ClaudeCodeDialect(), CodexDialect()
DONEWHEN = [sys.executable, "-m", "donewhen"]
PYTHON = shlex.quote(sys.executable)
MISSING = "Missing required files: report.md"
HANG_GUARD = 100.0


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    guarded(folder)
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and of those that it starts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def guarded(folder: Path, text: str = 'files = ["report.md"]', table: str = "stop") -> None:
    (folder / "donewhen.toml").write_text(f"[{table}]\n{text}\n", encoding="utf-8")


def state(project: Path) -> Path:
    return project / ".donewhen" / "state"


def counts(project: Path) -> list[dict[str, Any]]:
    found = [json.loads(path.read_bytes()) for path in sorted(state(project).glob("attempts-*.json"))]
    return [data for data in found if data["refusals"]]


def records(project: Path) -> list[dict[str, Any]]:
    path = state(project) / "unverified.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def ask(
    project: Path,
    *,
    again: bool,
    kind: HookKind = "stop",
    dialect: Dialect = CLAUDE,
    cwd: Path | None = None,
    **more: object,
) -> dict[str, Any]:
    """One event; ``again`` says that the agent was held back since the person last spoke."""
    asked = {"session_id": "s1", "cwd": str(project), "stop_hook_active": again, **more}
    return respond_to_event(kind, dialect, json.dumps(asked), {}, cwd or project)


def held(answer: dict[str, Any]) -> bool:
    return answer.get("decision") == "block" or "hookSpecificOutput" in answer


def stops(project: Path, count: int, **more: Any) -> list[bool]:
    """A prompt and ``count`` attempts to stop: which of them were held back."""
    return [held(ask(project, again=number > 0, **more)) for number in range(count)]


# The cap


def test_after_five_refusals_for_the_same_reason_the_agent_is_let_go_and_the_person_is_told(project: Path) -> None:
    answers = [ask(project, again=number > 0) for number in range(6)]
    assert answers[:5] == [{"decision": "block", "reason": MISSING}] * 5
    note = f"donewhen let the agent stop UNVERIFIED after 6 attempts: {MISSING}"
    assert answers[5] == {"systemMessage": note}


def test_codex_is_let_go_without_a_word_because_it_has_nowhere_to_show_one(project: Path) -> None:
    answers = [ask(project, again=number > 0, dialect=CODEX, turn_id="t1") for number in range(6)]
    assert answers == [{"decision": "block", "reason": MISSING}] * 5 + [{}]


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
def test_a_stop_that_was_let_through_leaves_an_unverified_record(project: Path, dialect: Dialect) -> None:
    stops(project, 5, dialect=dialect)
    assert records(project) == []
    ask(project, again=True, dialect=dialect)
    (record,) = records(project)
    assert record.pop("at").endswith("+00:00")
    assert record.pop("session").startswith(f"{dialect.name}-stop-s1")
    assert record == {"status": "capped", "attempts": 6, "code": "files_missing", "feedback": MISSING}


def test_once_let_go_an_agent_stays_free_until_the_person_speaks_again(project: Path) -> None:
    assert stops(project, 8) == [True] * 5 + [False] * 3
    assert [record["attempts"] for record in records(project)] == [6, 7, 8]
    assert stops(project, 6) == [True] * 5 + [False]


def test_once_let_go_an_agent_is_held_back_again_for_another_reason(project: Path) -> None:
    guarded(project, 'files = ["a", "b"]')
    assert stops(project, 6) == [True] * 5 + [False]
    (project / "a").write_text("x")
    assert held(ask(project, again=True)) is True


def test_the_number_of_refusals_is_a_setting(project: Path) -> None:
    guarded(project, 'files = ["report.md"]\nmax_stalled = 2')
    assert stops(project, 3) == [True, True, False]


def test_the_number_of_refusals_in_all_is_a_setting_too(project: Path) -> None:
    counter = project / "counter"
    counter.write_text("0")
    (project / "moves.py").write_text(
        "from pathlib import Path\n"
        "n = int(Path('counter').read_text()) + 1\n"
        "Path('counter').write_text(str(n))\n"
        "print('still missing: part', chr(96 + n))\n"
        "raise SystemExit(1)\n"
    )
    guarded(project, f"commands = [{json.dumps(PYTHON + ' moves.py')}]\nmax_stalled = 2\nmax_attempts = 6")
    assert stops(project, 7) == [True] * 6 + [False]


def test_progress_starts_the_count_anew(project: Path) -> None:
    guarded(project, 'files = ["a", "b"]\nmax_stalled = 2')
    assert stops(project, 2) == [True, True]
    (project / "a").write_text("x")
    assert [held(ask(project, again=True)) for _ in range(3)] == [True, True, False]


def test_the_time_that_a_command_took_is_no_progress(project: Path) -> None:
    # Every run of pytest ends with "1 failed in 0.03s": another number, the same reason.
    (project / "counter").write_text("10")
    (project / "tests.py").write_text(
        "from pathlib import Path\n"
        "n = int(Path('counter').read_text()) + 1\n"
        "Path('counter').write_text(str(n))\n"
        "print('FAILED test_a.py::test_a - assert 1 == 2')\n"
        "print(f'1 failed in 0.{n}s')\n"
        "raise SystemExit(1)\n"
    )
    guarded(project, f"commands = [{json.dumps(PYTHON + ' tests.py')}]")
    assert stops(project, 6) == [True] * 5 + [False]


def test_a_verified_stop_starts_the_count_anew(project: Path) -> None:
    assert stops(project, 4) == [True] * 4
    (project / "report.md").write_text("x")
    assert ask(project, again=True) == {}
    assert counts(project) == []
    (project / "report.md").unlink()
    assert [held(ask(project, again=True)) for _ in range(6)] == [True] * 5 + [False]


def test_a_new_prompt_starts_the_count_anew(project: Path) -> None:
    for _ in range(3):
        assert stops(project, 5) == [True] * 5
    assert ask(project, again=True).keys() == {"systemMessage"}


def test_a_new_turn_of_codex_starts_the_count_anew(project: Path) -> None:
    for turn in ("t1", "t2"):
        assert stops(project, 5, dialect=CODEX, turn_id=turn) == [True] * 5
    assert held(ask(project, again=True, dialect=CODEX, turn_id="t2")) is False
    assert held(ask(project, again=True, dialect=CODEX, turn_id="t2")) is False


def test_structured_output_is_denied_five_times_and_then_let_through(project: Path) -> None:
    def output() -> dict[str, Any]:
        return ask(project, again=False, kind="pre-tool-use", tool_name="StructuredOutput", tool_input={})

    assert [held(output()) for _ in range(5)] == [True] * 5
    assert output().keys() == {"systemMessage"}
    assert [record["session"].split("-s1")[0] for record in records(project)] == ["claude-pre-tool-use"]


def test_a_task_that_is_being_completed_is_held_five_times_and_then_let_through(project: Path) -> None:
    # This event of Claude Code has a task_id, and no stop_hook_active.
    guarded(project, table="task_completed")
    asked = {"session_id": "s1", "cwd": str(project), "task_id": "1", "task_subject": "Write the report"}

    def complete() -> bool:
        return held(respond_to_event("task-completed", CLAUDE, json.dumps(asked), {}, project))

    assert [complete() for _ in range(6)] == [True] * 5 + [False]
    assert len(records(project)) == 1


@pytest.mark.parametrize(
    "text",
    ['[stop]\nfiles = ["out/secret"]\n', "[stop\n", "[stopp]\n"],
    ids=["a check that raises", "a broken file", "an unknown setting"],
)
def test_a_broken_check_holds_the_agent_back_five_times_too_and_not_for_ever(project: Path, text: str) -> None:
    (project / "out").symlink_to("/")
    (project / "donewhen.toml").write_text(text)
    assert stops(project, 6) == [True] * 5 + [False]
    assert [record["code"] for record in records(project)] == ["gate_error"]
    assert stops(project, 6, dialect=CODEX) == [True] * 5 + [False]


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
def test_an_agent_whose_folder_is_gone_is_not_held_back_for_ever(project: Path, dialect: Dialect) -> None:
    gone = project / "worktree-that-was-removed"
    answers = [held(ask(gone, again=number > 0, dialect=dialect, cwd=project)) for number in range(10)]
    assert answers[0] is True
    assert False in answers


@pytest.mark.parametrize("stdin", ["", "hello", "[]", '{"session_id": "s1", "stop_hook_active": tr'])
def test_a_runtime_that_sends_no_events_is_not_held_back_for_ever(project: Path, stdin: str) -> None:
    answers = [held(respond_to_event("stop", CODEX, stdin, {}, project)) for _ in range(10)]
    assert answers[0] is True
    assert False in answers


def test_the_record_of_a_broken_settings_file_stands_in_the_project_wherever_the_agents_shell_is(
    project: Path, tmp_path: Path
) -> None:
    guarded(project, "files = [")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stops(project, 6, cwd=elsewhere)
    assert sorted(os.listdir(elsewhere)) == []
    assert len(records(project)) == 1


# Who is counted together


def test_two_sessions_are_counted_apart(project: Path) -> None:
    assert stops(project, 5, session_id="one") == [True] * 5
    assert stops(project, 5, session_id="two") == [True] * 5
    assert len(counts(project)) == 2
    assert held(ask(project, again=True, session_id="one")) is False
    assert held(ask(project, again=True, session_id="two")) is False


def test_two_runtimes_and_two_kinds_of_stop_are_counted_apart(project: Path) -> None:
    both = '[stop]\nfiles = ["report.md"]\n[subagent_stop]\nfiles = ["report.md"]\n'
    (project / "donewhen.toml").write_text(both)
    for dialect in (CLAUDE, CODEX):
        for kind in ("stop", "subagent-stop"):
            assert stops(project, 5, dialect=dialect, kind=kind) == [True] * 5
    assert len(counts(project)) == 4


def test_two_sub_agents_of_one_session_are_counted_apart(project: Path) -> None:
    guarded(project, table="subagent_stop")
    for number in range(5):
        for agent in ("a1", "a2"):
            assert held(ask(project, again=number > 0, kind="subagent-stop", agent_id=agent)), (agent, number)
    for agent in ("a1", "a2"):
        assert not held(ask(project, again=True, kind="subagent-stop", agent_id=agent))


ODD_IDS = {
    "slashes": "a/b/c",
    "upwards": "../../../../etc/passwd",
    "absolute": "/etc/passwd",
    "dots": "..",
    "empty": "",
    "very long": "x" * 10_000,
    "unicode": "sitzung-ä-会-\U0001f600",
    "surrogate": "\ud800",
    "nul": "a\0b",
    "newline": "a\nb",
    "white space": "  ",
}


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("session", ODD_IDS.values(), ids=ODD_IDS)
def test_whatever_a_session_is_called_its_state_stays_in_its_folder(
    project: Path, session: str, dialect: Dialect
) -> None:
    before = {path for path in project.parent.rglob("*") if state(project) not in path.parents}
    assert stops(project, 5, session_id=session, dialect=dialect) == [True] * 5
    assert [count["stalled"] for count in counts(project)] == [5]
    assert held(ask(project, again=True, session_id=session, dialect=dialect)) is False
    after = {path for path in project.parent.rglob("*") if state(project) not in path.parents}
    ours = project / ".donewhen"
    assert after - before == {ours, ours / ".gitignore", ours / ".gitattributes", state(project)}


def test_session_ids_that_look_alike_as_file_names_are_counted_apart(project: Path) -> None:
    alike = ["a/b", "a-b", "a.b", "a b", "x" * 64 + "1", "x" * 64 + "2", "é", "ö"]
    for session in alike:
        ask(project, again=False, session_id=session)
    assert [count["refusals"] for count in counts(project)] == [1] * len(alike)


# The folder


def test_what_is_local_to_a_machine_is_ignored_by_git_and_the_rest_is_not(project: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not here")
    shutil.rmtree(project / ".git")
    subprocess.run([git, "init", "-q", str(project)], check=True)
    stops(project, 6)
    ask(project, again=False)
    for name in ("state/lock", "state/unverified.jsonl", "cache/x", "index.sqlite", "index.sqlite-wal"):
        ignored = subprocess.run([git, "check-ignore", "-q", f".donewhen/{name}"], cwd=project)
        assert ignored.returncode == 0, name
    for name in ("ledger/P-1.jsonl", "evidence/x", ".gitignore"):
        ignored = subprocess.run([git, "check-ignore", "-q", f".donewhen/{name}"], cwd=project)
        assert ignored.returncode == 1, name
    listed = subprocess.run(
        [git, "status", "--porcelain", "-uall"], cwd=project, capture_output=True, text=True, check=True
    )
    assert sorted(listed.stdout.split()) == sorted(
        ["??", ".donewhen/.gitattributes", "??", ".donewhen/.gitignore", "??", "donewhen.toml"]
    )


def test_a_gitignore_that_a_person_wrote_is_left_alone(project: Path) -> None:
    (project / ".donewhen").mkdir()
    (project / ".donewhen" / ".gitignore").write_text("*\n")
    ask(project, again=False)
    assert (project / ".donewhen" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b'{"attempts": 3',
        b"[]",
        b"null",
        b"7",
        b"\xff\xfe",
        b'{"attempts": "many", "refusals": 1, "stalled": 1, "last_reason": null}',
        b'{"attempts": null, "refusals": 1, "stalled": 1, "last_reason": null}',
        b'{"attempts": 1, "refusals": 1, "stalled": 1}',
        b'{"attempts": Infinity, "refusals": 1, "stalled": 1, "last_reason": null}',
        b'{"attempts": 1e999, "refusals": 1, "stalled": 1, "last_reason": null}',
        b'{"attempts": NaN, "refusals": 1, "stalled": 1, "last_reason": null}',
        b"[" * 100_000,
    ],
    ids=lambda value: str(value[:40]),
)
def test_a_broken_state_file_starts_the_count_anew(project: Path, broken: bytes) -> None:
    ask(project, again=False)
    (path,) = state(project).glob("attempts-*.json")
    path.write_bytes(broken)
    assert [held(ask(project, again=True)) for _ in range(6)] == [True] * 5 + [False]


def folder_is_a_file(project: Path) -> None:
    (project / ".donewhen").write_text("a file, where a folder should be")


def state_is_a_file(project: Path) -> None:
    (project / ".donewhen").mkdir()
    (project / ".donewhen" / "state").write_text("")


def lock_is_a_folder(project: Path) -> None:
    (state(project) / "lock").mkdir(parents=True)


def leads_nowhere(project: Path) -> None:
    (project / ".donewhen").symlink_to(project / "nowhere" / "deep")


def counter_is_a_folder(project: Path) -> None:
    ask(project, again=False)
    (path,) = state(project).glob("attempts-*.json")
    path.unlink()
    path.mkdir()


RUINS = [folder_is_a_file, state_is_a_file, lock_is_a_folder, leads_nowhere]


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("ruin", RUINS)
def test_an_agent_gains_nothing_by_spoiling_the_folder_it_is_counted_in(
    project: Path, elsewhere: Path, ruin: Any, dialect: Dialect
) -> None:
    ruin(project)
    assert stops(project, 6, dialect=dialect) == [True] * 5 + [False]
    assert list(elsewhere.rglob("unverified.jsonl"))


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("ruin", RUINS)
def test_where_nothing_can_be_remembered_at_all_the_agent_is_held_back_once_and_not_for_ever(
    project: Path, elsewhere: Path, ruin: Any, dialect: Dialect
) -> None:
    ruin(project)
    elsewhere.rmdir()
    elsewhere.write_text("no folder for temporary files")
    for _ in range(2):
        assert stops(project, 2, dialect=dialect) == [True, False]


def test_two_projects_that_are_counted_elsewhere_are_counted_apart(project: Path, elsewhere: Path) -> None:
    other = project.parent / "other"
    (other / ".git").mkdir(parents=True)
    guarded(other)
    for one in (project, other):
        folder_is_a_file(one)
        assert stops(one, 5) == [True] * 5
    assert len(list(elsewhere.rglob("attempts-*.json"))) == 2


def test_what_is_counted_elsewhere_is_for_its_owner_only(project: Path, elsewhere: Path) -> None:
    folder_is_a_file(project)
    stops(project, 6)
    (folder,) = elsewhere.iterdir()
    (inner,) = folder.iterdir()
    assert oct(folder.stat().st_mode & 0o022) == "0o0"
    assert oct(inner.stat().st_mode & 0o077) == "0o0"


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_that_somebody_else_has_put_among_the_temporary_files_is_not_used(
    project: Path, elsewhere: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever owns it could plant a count that lets the agent go, or hold the lock for ever.
    somebody = 65534
    if os.geteuid() != 0:
        # Only root can give a folder away; others can be somebody else than the one who made it.
        us, somebody = os.getuid(), os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: us + 1)
        monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    planted = elsewhere / f"donewhen-{os.getuid()}" if kind == "folder" else tmp_path / "theirs"
    planted.mkdir()
    os.chown(planted, somebody, -1)
    planted.chmod(0o777)
    if kind == "link":
        (elsewhere / f"donewhen-{os.getuid()}").symlink_to(planted)
    folder_is_a_file(project)
    assert stops(project, 1) == [True]
    assert list(planted.iterdir()) == []


def test_where_the_count_cannot_be_kept_the_agent_is_not_held_back_for_ever(project: Path, elsewhere: Path) -> None:
    counter_is_a_folder(project)
    held_back = stops(project, 10)
    assert held_back[0] is True
    assert False in held_back


def test_where_nothing_can_be_remembered_a_task_is_not_held_back_for_ever(project: Path, elsewhere: Path) -> None:
    guarded(project, table="task_completed")
    folder_is_a_file(project)
    elsewhere.rmdir()
    elsewhere.write_text("")
    asked = json.dumps({"session_id": "s1", "cwd": str(project), "task_id": "1", "task_subject": "x"})
    assert False in [held(respond_to_event("task-completed", CLAUDE, asked, {}, project)) for _ in range(10)]


def test_an_agent_in_a_folder_without_write_permission_is_counted_all_the_same(project: Path, elsewhere: Path) -> None:
    project.chmod(0o555)
    try:
        lines = [
            json.loads(process(project, again=number > 0, prefix=without_privileges()).communicate(timeout=60)[0])
            for number in range(6)
        ]
    finally:
        project.chmod(0o755)
    assert lines[:5] == [{"decision": "block", "reason": MISSING}] * 5
    assert set(lines[5]) == {"systemMessage"}
    assert not (project / ".donewhen").exists()


# What held it back vanishes


@pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])
@pytest.mark.parametrize("text", [None, "", "[subagent_stop]\n", "[stop]\nfiles = []\n"])
def test_an_agent_that_removes_what_holds_it_back_is_still_held_back_and_not_for_ever(
    project: Path, text: str | None, dialect: Dialect
) -> None:
    assert held(ask(project, again=False, dialect=dialect))
    if text is None:
        (project / "donewhen.toml").unlink()
    else:
        (project / "donewhen.toml").write_text(text)
    answers = [ask(project, again=True, dialect=dialect) for _ in range(10)]
    assert_sentences(answers[0]["reason"])
    assert held(answers[0])
    assert not held(answers[-1])
    assert records(project)


def test_a_person_who_removes_the_settings_is_not_held_back_at_the_next_prompt(project: Path) -> None:
    ask(project, again=False)
    (project / "donewhen.toml").unlink()
    assert ask(project, again=False) == {}


def test_an_agent_that_was_never_held_back_is_let_go_where_the_settings_are_gone(project: Path) -> None:
    ask(project, again=False)
    (project / "donewhen.toml").unlink()
    assert ask(project, again=True, session_id="another") == {}


def test_done_work_is_let_go_even_where_nothing_can_be_remembered(project: Path, elsewhere: Path) -> None:
    (project / "report.md").write_text("x")
    folder_is_a_file(project)
    assert ask(project, again=False) == {}
    assert ask(project, again=True) == {}


# Real processes


def process(project: Path, *, again: bool, prefix: list[str] | None = None) -> subprocess.Popen[bytes]:
    hook = subprocess.Popen(
        [*(prefix or []), *DONEWHEN, "hook", "stop", "--runtime", "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project,
        env={name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ},
    )
    assert hook.stdin is not None
    hook.stdin.write(json.dumps({"session_id": "s1", "cwd": str(project), "stop_hook_active": again}).encode())
    hook.stdin.close()
    hook.stdin = None
    return hook


@contextmanager
def lock_taken(project: Path) -> Iterator[None]:
    """Whoever wants to count has to wait."""
    state(project).mkdir(parents=True, exist_ok=True)
    with (state(project) / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_lock_that_is_never_released_moves_the_count_elsewhere(
    project: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop_attempts, "_PATIENCE", 0.0)
    with lock_taken(project):
        assert stops(project, 6) == [True] * 5 + [False]
    assert counts(project) == []
    assert list(elsewhere.rglob("lock"))


def marks(project: Path, text: str) -> None:
    """Lets each hook leave a mark when it has begun to check, and then refuses."""
    (project / "mark.py").write_text(
        "import os, pathlib\npathlib.Path('marks', str(os.getpid())).write_text('')\nraise SystemExit('not yet')\n"
    )
    (project / "marks").mkdir()
    guarded(project, f"commands = [{json.dumps(PYTHON + ' mark.py')}]\n{text}")


def wait_for_marks(project: Path, count: int) -> None:
    give_up = time.monotonic() + HANG_GUARD
    while len(os.listdir(project / "marks")) < count:
        assert time.monotonic() < give_up, "the hooks never began"
        time.sleep(0.01)


def test_eight_hooks_at_once_lose_no_count(project: Path) -> None:
    marks(project, "max_stalled = 100")
    with lock_taken(project):
        hooks = [process(project, again=True) for _ in range(8)]
        wait_for_marks(project, 8)
    lines = [json.loads(hook.communicate(timeout=HANG_GUARD)[0]) for hook in hooks]
    assert [one["decision"] for one in lines] == ["block"] * 8
    (count,) = counts(project)
    assert (count["attempts"], count["refusals"], count["stalled"]) == (8, 8, 8)


def test_of_eight_hooks_at_once_exactly_those_too_many_are_let_go(project: Path) -> None:
    hooks = [process(project, again=True) for _ in range(8)]
    lines = [json.loads(hook.communicate(timeout=HANG_GUARD)[0]) for hook in hooks]
    assert sorted(one.get("decision", "let go") for one in lines) == ["block"] * 5 + ["let go"] * 3
    assert sorted(record["attempts"] for record in records(project)) == [6, 7, 8]
    (count,) = counts(project)
    assert count["refusals"] == 8


def test_hooks_that_are_killed_on_their_way_neither_count_half_nor_leave_a_lock(project: Path) -> None:
    ask(project, again=False)
    (before,) = counts(project)
    marks(project, "max_stalled = 100")
    with lock_taken(project):
        hooks = [process(project, again=True) for _ in range(4)]
        wait_for_marks(project, 4)
        for hook in hooks:
            hook.send_signal(signal.SIGKILL)
        for hook in hooks:
            assert hook.communicate(timeout=HANG_GUARD)[0] == b""
    assert counts(project) == [before]
    after = process(project, again=True)
    assert json.loads(after.communicate(timeout=HANG_GUARD)[0])["decision"] == "block"
    (count,) = counts(project)
    assert count["attempts"] == before["attempts"] + 1


def test_a_lock_ends_with_the_process_that_held_it(project: Path) -> None:
    state(project).mkdir(parents=True)
    code = (
        "import fcntl, sys, time; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('locked', flush=True); time.sleep(1000)"
    )
    lock = str(state(project) / "lock")
    with subprocess.Popen([sys.executable, "-c", code, lock], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        hook = process(project, again=True)
        holder.kill()
    assert json.loads(hook.communicate(timeout=HANG_GUARD)[0])["decision"] == "block"


def test_a_hook_that_was_killed_at_any_moment_leaves_a_count_that_the_next_one_can_use(project: Path) -> None:
    guarded(project, 'files = ["report.md"]\nmax_stalled = 1000\nmax_attempts = 1000')
    ask(project, again=False)
    for moment in range(20):
        hook = process(project, again=True)
        time.sleep(0.005 * moment)
        hook.kill()
        hook.communicate(timeout=HANG_GUARD)
        (count,) = counts(project)
        assert count["stalled"] == count["refusals"] == count["attempts"]
    (before,) = counts(project)
    assert 1 <= before["attempts"] <= 21
    ask(project, again=True)
    (count,) = counts(project)
    assert count["attempts"] == before["attempts"] + 1


def without_privileges() -> list[str]:
    """How to run something that permissions apply to, even when the tests run as root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("runs as root, and setpriv is not here to drop its privileges")
    return [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
