"""Checks claims now: with the project's own test command, the files on disk, and git."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from donewhen.claims.finding import Claim
from donewhen.completion import run_check
from donewhen.completion.from_settings import checks_for
from donewhen.config import GuardSettings, Settings, TestSettings
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.git import git
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.protocols import TaskCompletionContext
from donewhen.runtime import Session
from donewhen.setup.test_commands import TestCommand

Truth = Literal["true", "false", "unknown"]

_SHOWN = 3
_MOST_SEARCHED = 50_000
_NOT_SEARCHED = frozenset({".git", "node_modules", "__pycache__"})


@dataclass(frozen=True)
class Checked:
    """A claim, whether it is true now, and what shows it."""

    claim: Claim
    truth: Truth
    why: str


def check_claims(
    root: Path, claims: list[Claim], settings: Settings, found: list[TestCommand], progress: Callable[[str], None]
) -> list[Checked]:
    """Check each claim. Only commands of the settings, or found in the project, are run; none that a claim names."""

    def check(claim: Claim) -> tuple[Truth, str]:
        match claim.kind:
            case "tests":
                return _tests(root, settings.stop, found, progress)
            case "file":
                return _file(root, claim.about)
            case "commit":
                return _commit(root, claim.about)
            case "push":
                return "unknown", "not checked: that needs the network"

    return [Checked(claim, *check(claim)) for claim in claims]


def _tests(
    root: Path, stop: GuardSettings, found: list[TestCommand], progress: Callable[[str], None]
) -> tuple[Truth, str]:
    stop = replace(stop, files=(), jobs=False)
    if not stop.has_checks and found:
        command = found[0]
        tests = TestSettings(command.text) if command.reports else None
        stop = replace(stop, tests=tests, commands=() if tests else (command.text,))
    if not stop.has_checks:
        return "unknown", "not checked: no test command was found here; set one up with donewhen init --run CMD"
    context = TaskCompletionContext(session=Session(), filesystem=HostFilesystem(root))
    shown = []
    for name, checker in checks_for(stop, "donewhen.toml"):
        progress(name)
        result = run_check(checker, context)
        feedback = one_line(result.feedback or "", 300)
        if not result.complete:
            return ("unknown" if result.code is not None and result.code.undecided else "false"), feedback
        shown.append(f"{name}: {feedback}")
    return "true", " ".join(shown)


def _file(root: Path, name: str) -> tuple[Truth, str]:
    path = Path(os.path.normpath(root / name))
    if not path.is_relative_to(root):
        return "unknown", f"not looked at: {name} is outside of this folder"
    if not os.path.lexists(path) and "/" not in name:
        path = next(_named(root, name), path)
    if not os.path.lexists(path):
        return "false", f"{name} does not exist"
    if not path.resolve().is_relative_to(root.resolve()):
        return "unknown", f"not looked at: {name} leads outside of this folder"
    if not path.is_file():
        return "false", f"{name} is no file"
    size = path.stat().st_size
    where = path.relative_to(root).as_posix()
    return ("true", f"{where} has {size:,} bytes") if size else ("false", f"{where} is empty")


def _named(root: Path, name: str) -> Iterator[Path]:
    """Files with this name anywhere in the project: agents often leave the folder out."""

    def walk() -> Iterator[Path]:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(set(folders) - _NOT_SEARCHED)
            yield from (Path(folder) / each for each in sorted(names))

    return (path for path in islice(walk(), _MOST_SEARCHED) if path.name == name)


def _commit(root: Path, named: str) -> tuple[Truth, str]:
    if git(root, "rev-parse", "--verify", "-q", "HEAD") is None:
        return "false", "there is no commit in this folder"
    if named and git(root, "merge-base", "--is-ancestor", named, "HEAD") is None:
        return "false", f"{named} is not in the history of this branch"
    status = git(root, "status", "--porcelain", "-z", "--", ".")
    if status is None:
        return "unknown", "git does not say what is committed"
    changed = [entry[3:] for entry in status.decode("utf-8", "replace").split("\0") if len(entry) > 3]
    if changed:
        return "false", f"{len(changed)} file(s) are not committed: {join_limited(changed, _SHOWN)}"
    return "true", "everything here is committed"
