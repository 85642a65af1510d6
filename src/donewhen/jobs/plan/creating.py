"""Creates projects, workstreams and jobs: atomically, each with a unique id."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from donewhen.config.state_folder import prepare_state_folder
from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import split_command
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.ids import Prefix, id_in, next_id, slug
from donewhen.jobs.plan.job import Job, Stakes
from donewhen.jobs.plan.templates import job_plan, project_plan, workstream_plan
from donewhen.jobs.plan.workspace import PLAN, Form, Workspace, remove_temporary_files

JOB_FOLDERS = ("inputs", "outputs", "artifacts", "notes", "logs")
_LONGEST_TITLE = 200


def create_project(folder: Path, title: str, *, form: Form = "small", clock: Clock = SYSTEM_CLOCK) -> Workspace:
    """Create a project: ``jobs/`` beside the code, or in the big form a new folder in ``folder``."""
    title = _checked_title(title or folder.resolve().name)
    now = clock.now()
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if form == "big":
        with locked_folder(folder):
            taken = [project_id for path in folder.iterdir() if (project_id := id_in(path.name))]
            identifier = next_id("PJ", now, taken)
            _remove_unfinished_folders(folder)
            plan = project_plan(identifier, title, stamp, level=1)
            root = _create_folder(folder, f"{identifier}-{slug(title)}", plan, ())
        prepare_state_folder(root)
        return Workspace(root.resolve(), "big", clock)
    prepare_state_folder(folder)
    workspace = Workspace(folder.resolve(), "small", clock)
    with workspace.locked(workspace.project_file):
        if workspace.project_file.exists():
            raise UsageError("There already is a project here.", where=str(workspace.project_file))
        workspace.project_file.parent.mkdir(exist_ok=True)
        remove_temporary_files(workspace.project_file.parent)
        identifier = next_id("PJ", now, workspace.ledger.chains())
        write_atomically(workspace.project_file, project_plan(identifier, title, stamp))
    return workspace


DEFAULT_OUTPUTS = ("outputs/primary.md",)
"""The output of a job that names none."""


class NewJob(NamedTuple):
    """The content of a new job; everything else has default values."""

    title: str
    stakes: Stakes = "normal"
    depends_on: Sequence[str] = ()
    outputs: Sequence[str] = DEFAULT_OUTPUTS
    inputs: Sequence[str] = ()
    work: Sequence[str] | None = None
    commands: Sequence[str] = ()
    criteria: Sequence[str] = ()
    objective: str = ""
    priority: int = 2
    wave: str = ""
    more: Mapping[str, Value] = MappingProxyType({})
    """Additional fields that are not part of the format."""


def add_job(
    workspace: Workspace,
    title: str,
    *,
    stakes: Stakes = "normal",
    depends_on: Sequence[str] = (),
    outputs: Sequence[str] = DEFAULT_OUTPUTS,
    inputs: Sequence[str] = (),
    commands: Sequence[str] = (),
    criteria: Sequence[str] = (),
    workstream: str | None = None,
    work: Sequence[str] | None = None,
) -> Job:
    """Create a job. In the big form it goes into a workstream (by id or title), which is created if missing.

    Raise UsageError if one of the ``commands`` can't be split into words.
    """
    for command in commands:
        split_command(command)
    new = NewJob(_checked_title(title), stakes, depends_on, outputs, inputs, work, commands, criteria)
    with workspace.locked(workspace.project_file):
        new = new._replace(depends_on=tuple(workspace.place(name).id for name in depends_on))
        with _job_maker(workspace, workstream) as make:
            path = make(new)
    return workspace.job_at(path)


@contextmanager
def job_maker(workspace: Workspace, workstream: str | None = None) -> Iterator[Callable[[NewJob], Path]]:
    """Yield a function that creates a job and returns its plan file, while the project's lock is held.

    The caller makes sure that the ids in ``depends_on`` exist.
    """
    with workspace.locked(workspace.project_file), _job_maker(workspace, workstream) as make:
        yield make


@contextmanager
def _job_maker(workspace: Workspace, workstream: str | None) -> Iterator[Callable[[NewJob], Path]]:
    stream = find_workstream_folder(workspace, workstream)
    if stream is None and workstream is not None:
        stream = _create_workstream(workspace, workstream)
    jobs = (stream or workspace.root) / "jobs"
    jobs.mkdir(exist_ok=True)
    _remove_unfinished_folders(jobs)
    taken = [name for _, name in workspace.names()]
    last = ""

    def make(new: NewJob) -> Path:
        nonlocal last
        title = _checked_title(new.title)
        # Reading all ids for each of thousands of jobs takes minutes; on the same day the last id is the highest.
        same_day = last.startswith(f"WI-{workspace.clock.now():%Y%m%d}-")
        identifier = _free_id(workspace, "WI", taken) if not same_day else next_id("WI", workspace.clock.now(), [last])
        plan = job_plan(
            identifier,
            title,
            workspace.now(),
            stakes=new.stakes,
            depends_on=new.depends_on,
            outputs=new.outputs,
            inputs=new.inputs,
            work=new.work,
            commands=new.commands,
            criteria=new.criteria,
            objective=new.objective,
            priority=new.priority,
            wave=new.wave,
            more=new.more,
            level=1 if stream is not None else 2,
        )
        folder = _create_folder(jobs, f"{identifier}-{slug(title)}", plan, JOB_FOLDERS)
        last = identifier
        return folder / PLAN

    yield make


def find_workstream_folder(workspace: Workspace, name: str | None) -> Path | None:
    """The folder of a workstream; None if it does not exist yet, or if the project has no workstreams."""
    if workspace.form == "small":
        if name is not None:
            raise UsageError("This project has no workstreams.", where=str(workspace.root))
        return None
    known = list(workspace.workstream_folders())
    if name is None:
        if len(known) != 1:
            names = ", ".join(folder.name for folder in known) or "none"
            raise UsageError(
                f"Which workstream? Existing workstreams: {names}.",
                next_step="Name an existing or a new one: --workstream NAME",
            )
        return known[0]
    wanted = slug(name)
    for folder in known:
        if name in (id_in(folder.name), folder.name) or folder.name == f"{id_in(folder.name)}-{wanted}":
            return folder
    return None


def _create_workstream(workspace: Workspace, name: str) -> Path:
    title = _checked_title(name)
    taken = (stream_id for folder in workspace.workstream_folders() if (stream_id := id_in(folder.name)))
    identifier = _free_id(workspace, "WS", taken)
    streams = workspace.root / "workstreams"
    streams.mkdir(exist_ok=True)
    _remove_unfinished_folders(streams)
    plan = workstream_plan(identifier, title, workspace.now())
    return _create_folder(streams, f"{identifier}-{slug(name)}", plan, ("jobs",))


def _free_id(workspace: Workspace, prefix: Prefix, taken: Iterable[str]) -> str:
    """An id that was never used: the ledger still has the ids of jobs whose folders were deleted."""
    return next_id(prefix, workspace.clock.now(), [*taken, *workspace.ledger.chains()])


def _create_folder(parent: Path, name: str, plan: bytes, folders: Sequence[str]) -> Path:
    """Create a folder with its content atomically: it is built under a temporary name, then renamed."""
    temporary = parent / f".donewhen-{os.urandom(8).hex()}.new"
    temporary.mkdir()
    try:
        for folder in folders:
            (temporary / folder).mkdir()
        write_atomically(temporary / PLAN, plan)
        return temporary.rename(parent / name)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _remove_unfinished_folders(parent: Path) -> None:
    """Remove folders that a killed process left unfinished. The caller holds the project's lock."""
    for unfinished in parent.glob(".donewhen-*.new"):
        shutil.rmtree(unfinished, ignore_errors=True)


def _checked_title(text: str) -> str:
    title = one_line(text, _LONGEST_TITLE)
    if not title:
        raise UsageError("The title is empty.")
    return title
