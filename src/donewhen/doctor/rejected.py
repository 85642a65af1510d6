"""Ask the client which settings it rejects: a mistake anywhere in a file can make it ignore the whole file."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from donewhen.adapters.agent_client import ClientRoom, ClientStart
from donewhen.adapters.diagnosis import Diagnosis
from donewhen.doctor.firing import PATIENCE, run_until, scripted_server
from donewhen.doctor.hook_settings import RuntimeSettings, SettingsFile, entries_in, is_ours
from donewhen.doctor.scratch import PROMPT, inherited_from, scratch_of, scratch_path
from donewhen.foundation.plain_text import one_line

_ONLY_AN_ENTRY = "entries were skipped"
"""How Claude Code begins a list of entries that it ignores without ignoring the rest of their file."""


@dataclass(frozen=True)
class Complaint:
    """What the client does not accept: the place in the file, such as ``hooks.Stop.0``, and why."""

    place: str
    why: str
    whole_file: bool


def rejected_settings(runtime: RuntimeSettings, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """The settings files with our hooks that the installed client rejects."""
    client = runtime.target.client
    program = shutil.which(client.program, path=environ.get("PATH", os.defpath))
    if program is None or not client.check_options:
        return
    with scratch_of(runtime, whole=True) as scratch, scripted_server(client.api, lambda request: 0.0) as server:
        room = ClientRoom(scratch.home, scratch.project, server.root_url, inherited_from(runtime, environ))
        start = client.start(program, room, PROMPT)
        first, *rest = start.arguments
        start = ClientStart((first, *client.check_options, *rest), start.environment)
        _, output = run_until(start, scratch.project, threading.Event(), PATIENCE)
        paths = {file.path: str(scratch_path(runtime, file, scratch)) for file in runtime.hook_files}
    for file in runtime.hook_files:
        for complaint in complaints(output, paths[file.path]):
            if _concerns_us(file, complaint):
                detail = f"{runtime.target.title} does not load {file.path}: {complaint.place}: {complaint.why}"
                advice = f"Correct {complaint.place} in {file.path}."
                yield Diagnosis(f"{runtime.name} {file.where} rejected", "broken", one_line(detail, 400), advice)
                break


def complaints(output: str, path: str) -> list[Complaint]:
    """What the client's output says about a settings file."""
    pattern = re.compile(rf"\s+{re.escape(path)} \((?P<place>[^)]*)\): (?P<why>.*)")
    found: list[Complaint] = []
    whole_file = True
    for line in output.splitlines():
        match = pattern.fullmatch(line)
        if match is not None:
            found.append(Complaint(match["place"], match["why"], whole_file))
        elif line.strip() and not line.startswith(" "):
            whole_file = _ONLY_AN_ENTRY not in line
    return found


def _concerns_us(file: SettingsFile, complaint: Complaint) -> bool:
    """Whether a hook of ours is in what is ignored."""
    places = [entry.place.replace("[", ".").replace("]", "") for entry in entries_in(file) if is_ours(entry)]
    if complaint.whole_file:
        return bool(places)
    return any(f"{place}.".startswith(f"{complaint.place}.") for place in places)
