"""``notes/github-map.json``: the issue of each job. A broken file is reported and never overwritten."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec

from donewhen.foundation.files import read_regular
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.size_limits import ISSUE_MAP
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mirror.http.errors import MirrorError

SCHEMA = "theworkshop.githubmap.v1"
_NEW: Mapping[str, Any] = {
    "schema": SCHEMA,
    "repo": "",
    "enabled": True,
    "last_sync_at": "",
    "issues": {},
    "milestones": {},
    "project_board": {"id": "", "url": ""},
}


class MappedNumber(msgspec.Struct, frozen=True):
    """An issue or a milestone."""

    number: Annotated[int, msgspec.Meta(gt=0)]


class MapContent(msgspec.Struct, frozen=True):
    """What donewhen uses of the map."""

    repo: str | None = ""
    issues: dict[str, MappedNumber] = {}
    milestones: dict[str, MappedNumber] = {}


@dataclass(frozen=True)
class IssueMap:
    """The map. ``data`` is the file as it was read, with unknown keys; ``content`` is the same as a typed value.

    Raises msgspec.ValidationError if a value has the wrong type.
    """

    data: Mapping[str, Any]
    content: MapContent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", msgspec.convert(self.data, MapContent))

    @property
    def repo(self) -> str:
        return self.content.repo or ""

    def issue(self, job: str) -> int | None:
        """Return the number of a job's issue, if it is known."""
        entry = self.content.issues.get(job)
        return None if entry is None else entry.number

    def milestone(self, wave: str) -> int | None:
        entry = self.content.milestones.get(wave)
        return None if entry is None else entry.number

    def with_issue(self, job: str, number: int, url: str) -> IssueMap:
        return self._with("issues", job, {"number": number, "url": url})

    def with_milestone(self, wave: str, number: int, url: str, title: str) -> IssueMap:
        return self._with("milestones", wave, {"number": number, "url": url, "title": title})

    def synced(self, repo: str, at: str) -> IssueMap:
        """Return the map after a sync with this repository."""
        return replace(self, data={**self.data, "repo": repo, "enabled": True, "last_sync_at": at})

    def _with(self, table: str, name: str, values: Mapping[str, Any]) -> IssueMap:
        before = self.data[table].get(name) or {}
        return replace(self, data={**self.data, table: {**self.data[table], name: {**before, **values}}})


def map_path(workspace: Workspace) -> Path:
    return workspace.base / "notes" / "github-map.json"


def read_map(workspace: Workspace) -> IssueMap:
    """Read the map; return an empty one if there is no file."""
    path = map_path(workspace)
    if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(workspace.root)):
        raise _broken_map(workspace, "is in a folder that links outside the project")
    try:
        raw = read_regular(path, ISSUE_MAP)
    except FileNotFoundError:
        return IssueMap(_NEW)
    except OSError as error:
        raise _broken_map(workspace, f"can't be read: {error.strerror}") from error
    try:
        data = parse_json(raw)
    except (ValueError, RecursionError) as error:
        raise _broken_map(workspace, f"is not JSON ({type(error).__name__})") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise _broken_map(workspace, f"does not have the schema {SCHEMA}")
    try:
        return IssueMap({**_NEW, **data})
    except msgspec.ValidationError as error:
        raise _broken_map(workspace, _explain({**_NEW, **data}, error)) from error


def _explain(data: Mapping[str, Any], error: msgspec.ValidationError) -> str:
    """Why a map is invalid; a type error alone does not name the entry."""
    for table in ("issues", "milestones"):
        if not isinstance(data[table], dict):
            return f"has no {table} table"
        for name, entry in data[table].items():
            try:
                msgspec.convert(entry, MappedNumber)
            except msgspec.ValidationError:
                return f"has no valid number for {name[:100]!r} in {table}"
    return f"is invalid: {error}"


def write_map(workspace: Workspace, issue_map: IssueMap) -> None:
    path = map_path(workspace)
    path.parent.mkdir(parents=True, exist_ok=True)
    workspace.put(path, (json.dumps(dict(issue_map.data), indent=2, ensure_ascii=False) + "\n").encode())


def _broken_map(workspace: Workspace, problem: str) -> MirrorError:
    return MirrorError(
        f"The issue map {problem}. It was not changed.",
        where=workspace.where(map_path(workspace)),
        next_step="Restore it from version control, or move it away: issues are found again by their marks.",
    )
