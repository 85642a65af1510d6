"""Everything that a run of a command depends on: the command, its program, the environment, the inputs and the room."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.executables import Executable, resolve_executable
from donewhen.foundation.git_objects import LINK
from donewhen.jobs.contract.inputs import (
    MISSING,
    Manifest,
    hash_with_target,
    input_manifest,
    output_manifest,
    printable_name,
    upstream_manifest,
)
from donewhen.jobs.evidence.store import EvidenceKey
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import agreed_basis, basis_of, is_in_place
from donewhen.jobs.room.blobs import ChangedContentError
from donewhen.jobs.room.disk_tree import content_names
from donewhen.jobs.room.reading import RoomReading, read_rooms
from donewhen.jobs.room.surroundings import Surroundings, surroundings_in

# Variables that change language, time zone or output, and the home from which programs load code and configuration.
_FINGERPRINTED = ("LANG", "LANGUAGE", "TZ", "CI", "PYENV_VERSION", "HOME")


class RunConditions(NamedTuple):
    """Everything that a run of a command depends on, in its current state."""

    executable: Executable
    surroundings: Surroundings
    fingerprint: Mapping[str, str]
    inputs: Manifest
    parts: EvidenceKey


def run_conditions(
    workspace: Workspace, job: Job, argv: Sequence[str], inputs: Manifest | None = None
) -> RunConditions:
    """Return what a run of this command would depend on now."""
    settings = workspace.settings().jobs
    agreed = agreed_basis(workspace, job)
    surroundings = surroundings_in(workspace, agreed)
    environment = surroundings.variables
    executable = resolve_executable(argv[0], workspace.root, environment)
    watched = {*_FINGERPRINTED, *settings.pass_env, *(name for name in environment if name.startswith("LC_"))}
    fingerprint = {
        "platform": f"{sys.platform} {platform.machine()}",
        **{name: _short_hash(name, environment[name]) for name in sorted(watched) if name in environment},
    }
    if surroundings.private:
        fingerprint["network"] = surroundings.network
    manifest = evidence_inputs(workspace, job) if inputs is None else inputs
    room = "" if agreed is None or is_in_place() else agreed.hash
    parts = EvidenceKey(digest_of(list(argv)), executable.hash, digest_of(fingerprint), manifest.hash, room)
    return RunConditions(executable, surroundings, fingerprint, manifest, parts)


def variables_of(workspace: Workspace, job: Job) -> Mapping[str, str]:
    """The variables with which a job's commands run."""
    return surroundings_in(workspace, agreed_basis(workspace, job)).variables


def program_of(workspace: Workspace, job: Job, argv: Sequence[str]) -> Executable:
    """The program of a command; raise CommandNotRunnableError if it is missing."""
    return resolve_executable(argv[0], workspace.root, variables_of(workspace, job))


def evidence_inputs(workspace: Workspace, job: Job) -> Manifest:
    """The inputs of a job's commands: those that it declares, or else all files that are in its rooms."""
    if job.inputs or basis_of(workspace, job) is None:
        return input_manifest(workspace, job)
    return room_facts(workspace, job).inputs


def inputs_of_reading(workspace: Workspace, job: Job, reading: RoomReading) -> Manifest:
    """The inputs of a job that declares none: the files of its rooms."""
    return _inputs_of(workspace, job, reading, _output_files(workspace, job, reading))


def _inputs_of(workspace: Workspace, job: Job, reading: RoomReading, outputs: Mapping[str, str]) -> Manifest:
    files = {printable_name(name): f"git:{file.blob}" for name, file in reading.watched.items()}
    # An output can be ignored by git.
    own = {name: value for name, value in outputs.items() if value != MISSING}
    return Manifest({**files, **own, **upstream_manifest(workspace, job).files}, declared=False)


def _output_files(workspace: Workspace, job: Job, reading: RoomReading) -> Mapping[str, str]:
    """The outputs, with the content that the reading has; raise ChangedContentError if there is another one now.

    Otherwise somebody who exchanges a file all the time could have one content checked, and another one recorded.
    """
    place, like = reading.agreed.place, reading.agreed.like

    def hash_of(name: str, path: Path) -> str:
        seen = reading.disk.files.get(f"{place.inside}{name}")
        if seen is None or seen.mode == LINK:
            return hash_with_target(path)
        try:
            names = content_names(str(path), like)
        except OSError:
            names = None
        if names is None or names.blob != seen.blob:
            raise ChangedContentError(f"{name} changed while it was being read.", next_step="Run it again.")
        return f"sha256:{names.sha256}"

    # The gates report paths that leave the project.
    with suppress(ConfigError):
        return output_manifest(workspace, job, hash_of).files
    return {}


@dataclass(frozen=True)
class RoomFacts:
    """What the rooms of a job say about the files now."""

    inputs: Manifest
    """If the job declares none."""
    work: Mapping[str, str]
    """The changed files of the work, with the names of their contents (git's); empty if they were removed."""
    outputs: Mapping[str, str]
    """The outputs, with the hashes of the same contents."""


def room_facts(workspace: Workspace, job: Job) -> RoomFacts:
    """Read the rooms of a job once."""
    return workspace.once(("room", job.path, job.outputs), lambda: _room_facts(workspace, job))


def _room_facts(workspace: Workspace, job: Job) -> RoomFacts:
    with read_rooms(workspace, job) as reading:
        if reading is None:
            return RoomFacts(input_manifest(workspace, job), {}, output_manifest(workspace, job).files)
        work = {change.name: change.blob for change in reading.plan.work}
        outputs = _output_files(workspace, job, reading)
        return RoomFacts(_inputs_of(workspace, job, reading, outputs), work, outputs)


def _short_hash(name: str, value: str) -> str:
    """Return a hash that is long enough to detect a change and too short to recover the value."""
    return hashlib.sha256(f"{name}={value}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
