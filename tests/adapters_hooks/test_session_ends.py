"""What is on record when a session has ended, and what is not: events as runtimes send them, real files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.codex.dialect import CodexDialect
from donewhen.adapters.command_hooks import Dialect, HookKind, respond_to_event
from donewhen.adapters.stop_attempts import folder_elsewhere
from donewhen.adapters.stop_record import RECORD, unverified_ends

CLAUDE, CODEX = ClaudeCodeDialect(), CodexDialect()
OLD_STATE = {"attempts", "refusals", "stalled", "last_reason"}
DIALECTS = pytest.mark.parametrize("dialect", [CLAUDE, CODEX], ids=["claude", "codex"])


@pytest.fixture(params=["in a repository", "without git"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    if request.param == "in a repository":
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    (folder / "other.txt").write_text("as it was")
    return folder


def ask(
    project: Path, kind: HookKind, dialect: Dialect = CLAUDE, *, prompt: str | None = "p1", **more: Any
) -> dict[str, Any]:
    turn = {"claude": "prompt_id", "codex": "turn_id"}[dialect.name]
    about = {"session_id": "s1", "cwd": str(project), **more}
    # Codex does not say the turn at the end of a session.
    if prompt is not None and not (dialect.name == "codex" and kind == "session-end"):
        about[turn] = prompt
    return respond_to_event(kind, dialect, json.dumps(about), {}, project)


def stop(project: Path, dialect: Dialect = CLAUDE, *, again: bool = False, **more: Any) -> bool:
    return ask(project, "stop", dialect, stop_hook_active=again, **more).get("decision") == "block"


def state(project: Path) -> Path:
    return project / ".donewhen" / "state"


def on_record(project: Path) -> list[tuple[str, str]]:
    return [(end.status, end.how) for end in unverified_ends(state(project) / RECORD)]


def finish(project: Path) -> None:
    (project / "report.md").write_text("done")


@DIALECTS
def test_an_end_without_a_stop_is_on_record_with_what_is_missing(project: Path, dialect: Dialect) -> None:
    assert ask(project, "session-end", dialect, reason="other") == {}
    (end,) = unverified_ends(state(project) / RECORD)
    assert (end.status, end.how, end.code) == ("incomplete", "session-end: other", "files_missing")
    assert end.feedback == "Missing required files: report.md"
    assert end.session.startswith(f"{dialect.name}-stop-s1")


@DIALECTS
def test_an_end_of_finished_work_is_verified_even_if_no_stop_was_seen(project: Path, dialect: Dialect) -> None:
    finish(project)
    ask(project, "session-end", dialect)
    assert on_record(project) == []
    rows = [json.loads(line) for line in (state(project) / RECORD).read_text().splitlines()]
    # The end was on record before it was checked.
    assert [row["status"] for row in rows] == ["incomplete", "verified"]
    assert len({row["end"] for row in rows}) == 1


@DIALECTS
def test_a_verified_stop_covers_the_end_if_nothing_has_changed_since(project: Path, dialect: Dialect) -> None:
    finish(project)
    assert not stop(project, dialect)
    ask(project, "session-end", dialect)
    assert not (state(project) / RECORD).exists()
    assert list(state(project).glob("attempts-*")) == []


@DIALECTS
def test_a_verified_stop_does_not_cover_what_was_undone_later(project: Path, dialect: Dialect) -> None:
    finish(project)
    assert not stop(project, dialect)
    (project / "report.md").unlink()
    ask(project, "session-end", dialect)
    assert on_record(project) == [("incomplete", "session-end")]


def test_a_changed_file_that_git_ignores_is_seen_if_it_is_required(project: Path) -> None:
    (project / ".gitignore").write_text("report.md\n")
    finish(project)
    assert not stop(project)
    (project / "report.md").write_text("")
    ask(project, "session-end")
    assert on_record(project) == [("incomplete", "session-end")]


def test_a_verified_stop_of_an_earlier_message_does_not_cover_a_later_one(project: Path) -> None:
    (project / "donewhen.toml").write_text(f'[stop]\ncommands = ["test ! -e {project.parent / "broken"}"]\n')
    assert not stop(project)
    (project.parent / "broken").touch()
    ask(project, "session-end", prompt="p2")
    assert on_record(project) == [("incomplete", "session-end")]


def test_an_agent_that_was_let_go_is_on_record_once(project: Path) -> None:
    while stop(project, again=True):
        pass
    ask(project, "session-end")
    assert on_record(project) == [("capped", "stop")]


def test_an_error_and_the_end_after_it_are_one_end(project: Path) -> None:
    ask(project, "stop-failure", error="rate_limit")
    ask(project, "session-end", reason="other")
    assert on_record(project) == [("incomplete", "stop-failure: rate_limit")]


def test_a_session_that_goes_on_after_an_error_and_finishes_has_both_on_record(project: Path) -> None:
    ask(project, "stop-failure")
    finish(project)
    assert not stop(project)
    ask(project, "session-end")
    assert on_record(project) == [("incomplete", "stop-failure")]


def test_a_resumed_session_ends_again(project: Path) -> None:
    ask(project, "session-end", prompt="p1")
    ask(project, "session-end", prompt="p2")
    assert on_record(project) == [("incomplete", "session-end")] * 2


def test_sessions_side_by_side_have_ends_of_their_own(project: Path) -> None:
    finish(project)
    assert not stop(project, session_id="a")
    (project / "report.md").unlink()
    ask(project, "session-end", session_id="b")
    assert len(on_record(project)) == 1
    ask(project, "session-end", session_id="a")
    assert len(on_record(project)) == 2


def test_a_session_in_which_nothing_was_asked_leaves_no_record(project: Path) -> None:
    ask(project, "session-end", prompt=None, transcript_path=str(project / "none.jsonl"))
    assert on_record(project) == []
    (project / "some.jsonl").touch()
    ask(project, "session-end", prompt=None, transcript_path=str(project / "some.jsonl"))
    assert len(on_record(project)) == 1


def test_a_project_without_checks_has_no_records(project: Path) -> None:
    (project / "donewhen.toml").write_text('[subagent_stop]\nfiles = ["x"]\n')
    ask(project, "session-end")
    ask(project, "stop-failure")
    assert not (project / ".donewhen").exists()


def test_a_check_that_takes_longer_than_the_runtime_waits_stays_unverified(project: Path) -> None:
    class Hurried(ClaudeCodeDialect):
        end_seconds = 0.3

    (project / "donewhen.toml").write_text('[stop]\ncommands = ["sleep 100"]\n')
    ask(project, "session-end", Hurried())
    (end,) = unverified_ends(state(project) / RECORD)
    assert (end.status, end.code) == ("errored", "check_timeout")
    assert "sleep 100" in end.feedback


def test_an_end_with_settings_that_cannot_be_read_is_on_record(project: Path) -> None:
    (project / "donewhen.toml").write_text("[stop\n")
    assert ask(project, "session-end") == {}
    (end,) = unverified_ends(state(project) / RECORD)
    assert (end.status, end.code) == ("errored", "gate_error")


@pytest.mark.parametrize("settings", [None, ""], ids=["removed", "emptied"])
def test_an_agent_that_was_held_and_did_away_with_the_settings_is_on_record(
    project: Path, settings: str | None
) -> None:
    assert stop(project)
    (project / "donewhen.toml").unlink()
    if settings is not None:
        (project / "donewhen.toml").write_text(settings)
    ask(project, "session-end")
    assert on_record(project) == [("errored", "session-end")]
    ask(project, "session-end", session_id="another")
    assert len(on_record(project)) == 1


def test_an_end_is_on_record_elsewhere_if_the_folder_cannot_be_used(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (project / ".donewhen").write_text("a file")
    ask(project, "session-end")
    assert [end.status for end in unverified_ends(folder_elsewhere(project.resolve()) / RECORD)] == ["incomplete"]


@pytest.mark.parametrize("temporary", ["a folder of the hook", "no folder at all"])
@pytest.mark.parametrize("kind", ["stop", "session-end"])
def test_an_end_that_was_recorded_elsewhere_is_shown_whatever_the_temporary_folder_is(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, donewhen: Any, kind: HookKind, temporary: str
) -> None:
    folder = tmp_path / "temporary"
    folder.write_text("") if temporary == "no folder at all" else folder.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(folder))
        (project / ".donewhen").write_text("a file")
        while kind == "stop" and stop(project, again=True):
            pass
        if kind == "session-end":
            ask(project, kind)
    shown = json.loads(donewhen(["hooks", "status", "--json"], project).stdout)["data"]
    assert shown["unverified_stops"] == len(shown["unverified"]) == 1
    assert shown["unverified"][0]["how"] == kind


@pytest.mark.parametrize("event", ["", "no json", "[]"])
def test_an_end_whose_event_cannot_be_read_is_on_record(project: Path, event: str) -> None:
    assert respond_to_event("session-end", CLAUDE, event, {}, project) == {}
    assert on_record(project) == [("errored", "session-end")]


# Plan mode


@DIALECTS
def test_an_agent_that_only_plans_is_not_held_and_its_end_is_no_finding(project: Path, dialect: Dialect) -> None:
    assert not stop(project, dialect, permission_mode="plan")
    ask(project, "session-end", dialect)
    assert on_record(project) == []


@DIALECTS
def test_an_agent_that_was_held_cannot_free_itself_by_planning(project: Path, dialect: Dialect) -> None:
    assert stop(project, dialect)
    assert stop(project, dialect, again=True, permission_mode="plan")


@DIALECTS
def test_work_after_the_plan_is_held_and_its_end_is_on_record(project: Path, dialect: Dialect) -> None:
    assert not stop(project, dialect, permission_mode="plan")
    (project / "other.txt").write_text("work")
    ask(project, "session-end", dialect)
    assert on_record(project) == [("incomplete", "session-end")]
    assert stop(project, dialect, prompt="p2")


# The cap


def clock(project: Path, *, writes: str = "") -> None:
    """A check that never passes and never says the same twice."""
    script = project / "clock"
    script.write_text(f"#!/bin/sh\n{writes}\ncat /proc/sys/kernel/random/uuid; exit 1\n")
    script.chmod(0o755)
    (project / "donewhen.toml").write_text('[stop]\ncommands = ["./clock"]\n')


@DIALECTS
@pytest.mark.parametrize("again", [True, False], ids=["active", "never active"])
@pytest.mark.parametrize("writes", ["", "cat /proc/sys/kernel/random/uuid > made-by-the-check"], ids=["", "writing"])
def test_other_words_each_time_do_not_postpone_the_cap(
    project: Path, dialect: Dialect, writes: str, again: bool
) -> None:
    clock(project, writes=writes)
    held = [stop(project, dialect, again=again and number > 0) for number in range(8)]
    assert held == [True] * 7 + [False]
    assert on_record(project) == [("capped", "stop")]


def test_an_agent_that_works_between_its_stops_is_held_longer(project: Path) -> None:
    clock(project)
    for number in range(20):
        assert stop(project, again=number > 0)
        (project / "work.txt").write_text(str(number))


def test_another_message_of_the_person_starts_the_count_anew(project: Path) -> None:
    clock(project)
    for prompt in ("p1", "p2"):
        assert [stop(project, again=True, prompt=prompt) for _ in range(8)] == [True] * 7 + [False]


def test_a_higher_max_stalled_postpones_the_cap(project: Path) -> None:
    clock(project)
    settings = project / "donewhen.toml"
    settings.write_text(settings.read_text() + "max_stalled = 12\n")
    assert [stop(project, again=number > 0) for number in range(13)] == [True] * 12 + [False]


def test_attempts_that_an_earlier_version_has_counted_still_count(project: Path) -> None:
    assert stop(project, prompt=None)
    (path,) = state(project).glob("attempts-*")
    old = {name: value for name, value in json.loads(path.read_text()).items() if name in OLD_STATE}
    assert old.keys() == OLD_STATE
    path.write_text(json.dumps(old | {"stalled": 5, "refusals": 5, "attempts": 5}))
    assert not stop(project, again=True, prompt=None)


def test_the_states_of_many_sessions_do_not_pile_up(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.adapters.stop_attempts._MAX_SESSIONS", 3)
    for number in range(6):
        stop(project, session_id=f"s{number}")
    assert len(list(state(project).glob("attempts-*"))) == 3
