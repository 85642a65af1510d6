"""Who works on a job, and whether a job in progress is somebody else's.

In doubt it is yours. A job is another's only if it was started in another clone, or by the session of an agent that
still runs now and is not related to the one that asks. Sessions are told apart by their processes, as the kernel knows
them: no variable and no id that somebody writes makes a job somebody else's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from donewhen.config.agent_runtimes import AGENT_RUNTIMES
from donewhen.config.state_folder import FOLDER
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.git_clone import Clone, clone_of
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process_tree import RunningProcess, ancestors_of, running_process
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Started, Worker

SESSION_VARIABLE = "DONEWHEN_SESSION"
"""The id of the agent's session, as a hook at the start of the session gives it to the agent's shell."""
_SESSION_VARIABLES = (SESSION_VARIABLE, *(runtime.session_variable for runtime in AGENT_RUNTIMES))
_RUNTIMES = {program: runtime.name for runtime in AGENT_RUNTIMES for program in runtime.programs}

Other = Literal["", "clone", "session"]


def this_worker(root: Path, session: str = "", environ: Mapping[str, str] = CALLER_VARIABLES) -> Worker:
    """Who runs this, in the work tree of a project. ``session`` is the id that the agent's runtime has told."""
    named = (environ.get(name, "") for name in _SESSION_VARIABLES if name)
    clone = clone_of(root)
    process = _session_process(os.getpid())
    return Worker(
        clone=clone.id,
        places=[*clone.places],
        worktree=clone.worktree,
        runtime="" if process is None else _RUNTIMES[process.name],
        session=one_line(session or next(filter(None, named), ""), 100),
        process="" if process is None else process.identity,
    )


def whose(worker: Worker | None, me: Worker) -> Other:
    """Whether a job is another clone's or another live session's; empty if it is mine, or in doubt."""
    if worker is None or _is_same_session(worker, me):
        return ""
    if Clone(me.clone, (*me.places,), me.worktree).is_other_than(worker.clone, (*worker.places,)):
        return "clone"
    # Who is no agent's child, such as a person, has no session to tell others from.
    return "session" if me.process and worker.process and running_process(worker.process) is not None else ""


def worker_on_record(entries: Sequence[Entry]) -> Worker | None:
    """Who started a job last; None if that was not recorded."""
    started = (entry.content for entry in reversed(entries) if isinstance(entry.content, Started))
    last = next((content for content in started if content.job is None), None)
    return None if last is None else last.worker


def note_started(root: Path, me: Worker) -> None:
    """Remember on this machine that a session has started a job, so that it isn't asked to start another."""
    if me.process:
        with suppress(OSError):
            place = _mark(root, me)
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.touch()


def has_started_a_job(root: Path, me: Worker) -> bool:
    """Whether the session has started a job since its process began."""
    return bool(me.process) and _mark(root, me).exists()


def _mark(root: Path, me: Worker) -> Path:
    return root / FOLDER / "state" / f"attempts-started-{me.process.replace(':', '-')}.json"


def worker_data(worker: Worker) -> dict[str, object]:
    """A worker as the ledger has it."""
    data: dict[str, object] = msgspec.to_builtins(worker)
    return data


def _is_same_session(worker: Worker, me: Worker) -> bool:
    if worker.session and worker.session == me.session:
        return True
    if not worker.process:
        return False
    mine = {me.process, *(process.identity for process in ancestors_of(os.getpid()))}
    running = running_process(worker.process)
    # An agent that this one has started works for it.
    theirs = () if running is None else (process.identity for process in ancestors_of(running.pid))
    return worker.process in mine or me.process in theirs


def _session_process(pid: int) -> RunningProcess | None:
    """The nearest agent runtime that a process was started by."""
    return next((process for process in ancestors_of(pid) if process.name in _RUNTIMES), None)
