"""Everything that a run of a command depends on: the command, its program, the environment, the inputs and the room."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.executables import Executable, resolve_executable, safe_path
from donewhen.foundation.process import small_environment
from donewhen.jobs.contract.inputs import (
    MISSING,
    Manifest,
    input_manifest,
    output_manifest,
    printable_name,
    upstream_manifest,
)
from donewhen.jobs.evidence.store import EvidenceKey
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import basis_of
from donewhen.jobs.room.reading import read_rooms
from donewhen.jobs.room.room_plan import Tree

# Variables that change language, time zone or output, and the home from which programs load code and configuration.
_FINGERPRINTED = ("LANG", "LANGUAGE", "TZ", "CI", "PYENV_VERSION", "HOME")


class RunConditions(NamedTuple):
    """Everything that a run of a command depends on, in its current state."""

    executable: Executable
    environment: Mapping[str, str]
    fingerprint: Mapping[str, str]
    inputs: Manifest
    parts: EvidenceKey


def run_conditions(
    workspace: Workspace, job: Job, argv: Sequence[str], inputs: Manifest | None = None
) -> RunConditions:
    """Return what a run of this command would depend on now."""
    settings = workspace.settings().jobs
    executable = resolve_executable(argv[0], workspace.root)
    environment = command_environment(workspace)
    watched = {*_FINGERPRINTED, *settings.pass_env, *(name for name in environment if name.startswith("LC_"))}
    fingerprint = {
        "platform": f"{sys.platform} {platform.machine()}",
        **{name: _short_hash(name, environment[name]) for name in sorted(watched) if name in environment},
    }
    manifest = evidence_inputs(workspace, job) if inputs is None else inputs
    basis = basis_of(workspace, job)
    room = "" if basis is None else basis.hash
    parts = EvidenceKey(digest_of(list(argv)), executable.hash, digest_of(fingerprint), manifest.hash, room)
    return RunConditions(executable, environment, fingerprint, manifest, parts)


def command_environment(workspace: Workspace) -> dict[str, str]:
    """The variables that the commands of jobs get."""
    return small_environment(workspace.settings().jobs.pass_env) | {"PATH": safe_path(workspace.root)}


def evidence_inputs(workspace: Workspace, job: Job) -> Manifest:
    """The inputs of a job's commands: those that it declares, or else all files that are in its rooms."""
    if job.inputs or basis_of(workspace, job) is None:
        return input_manifest(workspace, job)
    return room_facts(workspace, job).inputs


def inputs_of_tree(workspace: Workspace, job: Job, tree: Tree) -> Manifest:
    """The inputs of a job that declares none, if these files are in its rooms."""
    files = {printable_name(name): f"git:{file.blob}" for name, file in tree.items()}
    # An output can be ignored by git. The gates report paths that leave the project.
    own: dict[str, str] = {}
    with suppress(ConfigError):
        own = {name: value for name, value in output_manifest(workspace, job).files.items() if value != MISSING}
    return Manifest({**files, **own, **upstream_manifest(workspace, job).files}, declared=False)


@dataclass(frozen=True)
class RoomFacts:
    """What the rooms of a job say about the files now."""

    inputs: Manifest
    """If the job declares none."""
    work: Mapping[str, str]
    """The changed files of the work, with the names of their contents (git's); empty if they were removed."""


def room_facts(workspace: Workspace, job: Job) -> RoomFacts:
    """Read the rooms of a job once."""
    return workspace.once(("room", job.path, job.outputs), lambda: _room_facts(workspace, job))


def _room_facts(workspace: Workspace, job: Job) -> RoomFacts:
    with read_rooms(workspace, job) as reading:
        if reading is None:
            return RoomFacts(input_manifest(workspace, job), {})
        work = {change.name: change.blob for change in reading.plan.work}
        return RoomFacts(inputs_of_tree(workspace, job, reading.watched), work)


def _short_hash(name: str, value: str) -> str:
    """Return a hash that is long enough to detect a change and too short to recover the value."""
    return hashlib.sha256(f"{name}={value}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
