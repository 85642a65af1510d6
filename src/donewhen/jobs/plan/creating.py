"""New projects, workstreams and jobs: complete or not there at all, each with an id of its own."""

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
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.ids import Prefix, id_in, next_id, slug
from donewhen.jobs.plan.job import Job, Stakes
from donewhen.jobs.plan.templates import job_plan, project_plan, workstream_plan
from donewhen.jobs.plan.workspace import PLAN, Form, Workspace, sweep

JOB_FOLDERS = ("inputs", "outputs", "artifacts", "notes", "logs")
_LONGEST_TITLE = 200


def create_project(folder: Path, title: str, *, form: Form = "small", clock: Clock = SYSTEM_CLOCK) -> Workspace:
    """Make a project: ``jobs/`` beside the code, or in the big form a folder of its own below ``folder``."""
    title = _title(title or folder.resolve().name)
    now = clock.now()
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if form == "big":
        with locked_folder(folder):
            taken = [found for path in folder.iterdir() if (found := id_in(path.name))]
            identifier = next_id("PJ", now, taken)
            _swept(folder)
            root = _new_folder(folder, f"{identifier}-{slug(title)}", project_plan(identifier, title, stamp), ())
        prepare_state_folder(root)
        return Workspace(root.resolve(), "big", clock)
    prepare_state_folder(folder)
    workspace = Workspace(folder.resolve(), "small", clock)
    with workspace.locked(workspace.project_file):
        if workspace.project_file.exists():
            raise UsageError("There is a project here already.", where=str(workspace.project_file))
        workspace.project_file.parent.mkdir(exist_ok=True)
        sweep(workspace.project_file.parent)
        identifier = next_id("PJ", now, workspace.ledger.chains())
        write_atomically(workspace.project_file, project_plan(identifier, title, stamp))
    return workspace


class NewJob(NamedTuple):
    """What a new job is to say; everything else is as in every new job."""

    title: str
    stakes: Stakes = "normal"
    depends_on: Sequence[str] = ()
    outputs: Sequence[str] = ("outputs/primary.md",)
    inputs: Sequence[str] = ()
    commands: Sequence[str] = ()
    criteria: Sequence[str] = ()
    objective: str = ""
    priority: int = 2
    wave: str = ""
    more: Mapping[str, Value] = MappingProxyType({})
    """Fields that are no part of the format."""


def add_job(
    workspace: Workspace,
    title: str,
    *,
    stakes: Stakes = "normal",
    depends_on: Sequence[str] = (),
    outputs: Sequence[str] = ("outputs/primary.md",),
    inputs: Sequence[str] = (),
    commands: Sequence[str] = (),
    criteria: Sequence[str] = (),
    workstream: str | None = None,
) -> Job:
    """Make a job; in the big form in a workstream, by its id or title, which is made where there is none."""
    new = NewJob(_title(title), stakes, depends_on, outputs, inputs, commands, criteria)
    with workspace.locked(workspace.project_file):
        new = new._replace(depends_on=tuple(workspace.place(one).id for one in depends_on))
        with _making(workspace, workstream) as make:
            path = make(new)
    return workspace.job_at(path)


@contextmanager
def job_maker(workspace: Workspace, workstream: str | None = None) -> Iterator[Callable[[NewJob], Path]]:
    """Make any number of jobs while nobody else makes one. Each is there, whole, once its plan's path is given back.

    What they depend on are ids that the caller knows to be there.
    """
    with workspace.locked(workspace.project_file), _making(workspace, workstream) as make:
        yield make


@contextmanager
def _making(workspace: Workspace, workstream: str | None) -> Iterator[Callable[[NewJob], Path]]:
    above = find_workstream_folder(workspace, workstream)
    if above is None and workstream is not None:
        above = _new_workstream(workspace, workstream)
    jobs = (above or workspace.root) / "jobs"
    jobs.mkdir(exist_ok=True)
    _swept(jobs)
    taken = [place.id for place in workspace.places()]
    last = ""

    def make(new: NewJob) -> Path:
        nonlocal last
        title = _title(new.title)
        # Looking at all ids for each of thousands takes minutes; the last one is the highest while its day lasts.
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
            commands=new.commands,
            criteria=new.criteria,
            objective=new.objective,
            priority=new.priority,
            wave=new.wave,
            more=new.more,
        )
        folder = _new_folder(jobs, f"{identifier}-{slug(title)}", plan, JOB_FOLDERS)
        last = identifier
        return folder / PLAN

    try:
        yield make
    finally:
        if above is not None:
            _listed(workspace, above / PLAN, "jobs", jobs)
            _listed(workspace, workspace.project_file, "workstreams", above.parent)


def find_workstream_folder(workspace: Workspace, name: str | None) -> Path | None:
    """The folder of the workstream that is meant; None where it is still to be made, or where the form has none."""
    if workspace.form == "small":
        if name is not None:
            raise UsageError("This project has no workstreams.", where=str(workspace.root))
        return None
    known = list(workspace.workstream_folders())
    if name is None:
        if len(known) != 1:
            told = ", ".join(one.name for one in known) or "none"
            raise UsageError(
                f"Which workstream? There are: {told}.", next_step="Name one, or a new one: --workstream NAME"
            )
        return known[0]
    wanted = slug(name)
    for folder in known:
        if name in (id_in(folder.name), folder.name) or folder.name == f"{id_in(folder.name)}-{wanted}":
            return folder
    return None


def _new_workstream(workspace: Workspace, name: str) -> Path:
    title = _title(name)
    taken = (found for folder in workspace.workstream_folders() if (found := id_in(folder.name)))
    identifier = _free_id(workspace, "WS", taken)
    streams = workspace.root / "workstreams"
    streams.mkdir(exist_ok=True)
    _swept(streams)
    plan = workstream_plan(identifier, title, workspace.now())
    return _new_folder(streams, f"{identifier}-{slug(name)}", plan, ("jobs",))


def _free_id(workspace: Workspace, prefix: Prefix, taken: Iterable[str]) -> str:
    """An id that nobody has, nor ever had: the ledger remembers jobs whose folders are gone."""
    return next_id(prefix, workspace.clock.now(), [*taken, *workspace.ledger.chains()])


def _new_folder(above: Path, name: str, plan: bytes, folders: Sequence[str]) -> Path:
    """A folder with everything in it, put in place by one rename: killed at any moment, it is there or it is not."""
    temporary = above / f".donewhen-{os.urandom(8).hex()}.new"
    temporary.mkdir()
    try:
        for folder in folders:
            (temporary / folder).mkdir()
            if folder != "jobs":
                # git does not keep empty folders.
                (temporary / folder / ".gitkeep").touch()
        write_atomically(temporary / PLAN, plan)
        return temporary.rename(above / name)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _swept(above: Path) -> None:
    """Remove what makers that were killed have left behind; whoever holds the project's lock is the only maker."""
    for left in above.glob(".donewhen-*.new"):
        shutil.rmtree(left, ignore_errors=True)


def _listed(workspace: Workspace, path: Path, field: str, folder: Path) -> None:
    """List everything that stands in a folder, also what a maker that was killed could not list any more."""
    document = workspace.read(path)
    known = document.fields.get(field)
    ids: list[Value] = list(known) if isinstance(known, list) else []
    missing = [found for one in sorted(folder.iterdir()) if (found := id_in(one.name)) and found not in ids]
    if missing:
        workspace.write(document, path, {field: [*ids, *missing], "updated_at": workspace.now()})


def _title(text: str) -> str:
    title = one_line(text, _LONGEST_TITLE)
    if not title:
        raise UsageError("A title is needed.")
    return title
