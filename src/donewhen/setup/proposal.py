"""What `donewhen init` would write, before it writes anything."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from donewhen.adapters.agent_rules import write_agent_rules
from donewhen.adapters.hook_files import FileChange, install_with_script
from donewhen.adapters.hook_targets import HOOK_TARGETS, HookTarget
from donewhen.config import CONFIG_FILE, PROJECT_FILE
from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import SETTINGS
from donewhen.jobs.plan.workspace import WorkspaceError, find_workspace
from donewhen.setup.ci_files import ci_text
from donewhen.setup.ignored_files import ignore_lines
from donewhen.setup.settings_text import settings_file, stop_table
from donewhen.setup.surroundings import Host, Surroundings
from donewhen.setup.test_commands import TestCommand, is_valid_toml


@dataclass(frozen=True)
class SetupChoice:
    """What is set up."""

    runtimes: tuple[str, ...]
    commands: tuple[TestCommand, ...]
    jobs: bool = False
    title: str = ""
    ci: Host | None = None


@dataclass(frozen=True)
class Proposal:
    """The changes that a choice makes, and what a person should know about them."""

    root: Path
    choice: SetupChoice
    files: tuple[FileChange, ...]
    """Files in which a text is added at the end, or which are created."""
    hooks: tuple[tuple[HookTarget, tuple[FileChange, FileChange]], ...]
    creates_project: bool
    rules: tuple[FileChange, ...] = ()
    """The files with rules for agents, which are about jobs."""
    notes: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether everything is as it should be already."""
        return not self.creates_project and not any(True for _ in self.changes)

    @property
    def changes(self) -> Iterator[FileChange]:
        """All changes of files that change something."""
        for change in (*self.files, *self.rules, *(change for _, pair in self.hooks for change in pair)):
            if not change.nothing:
                yield change


def propose(here: Surroundings, choice: SetupChoice, environ: Mapping[str, str]) -> Proposal:
    """Compute all changes. Raise an error for a file that can't be read or changed."""
    if not choice.runtimes:
        *others, last = (f"--{name}" for name in HOOK_TARGETS)
        raise UsageError(
            "No agent runtime was found here.", next_step=f"Name yours: {', '.join(others)} or {last}, or several."
        )
    settings, notes = _settings_change(here, choice)
    files = [settings, *_ignore_change(here), *_ci_change(here, choice)]
    hooks = tuple((target, _hook_changes(target, here.root, environ)) for target in _targets(choice.runtimes))
    return Proposal(
        here.root,
        choice,
        tuple(file for file in files if not file.nothing),
        hooks,
        creates_project=choice.jobs and not _has_project(here.root),
        rules=tuple(_rules(here.root, choice)),
        notes=(*notes, *_notes(here)),
    )


def diff_of(change: FileChange, root: Path) -> list[str]:
    """The change as the lines of a unified diff."""
    before, after = (
        (content or b"").decode("utf-8", "replace").splitlines() for content in (change.before, change.after)
    )
    name = change.path.relative_to(root).as_posix() if change.path.is_relative_to(root) else str(change.path)
    return list(difflib.unified_diff(before, after, "before" if change.before else "/dev/null", name, lineterm=""))


def _rules(root: Path, choice: SetupChoice) -> Iterator[FileChange]:
    if choice.jobs:
        changes = write_agent_rules(root, for_claude="claude" in choice.runtimes, dry_run=True)
        yield from (change for change in changes if not change.nothing)


def _targets(names: Sequence[str]) -> Iterator[HookTarget]:
    return (target for name, target in HOOK_TARGETS.items() if name in names)


def _hook_changes(target: HookTarget, root: Path, environ: Mapping[str, str]) -> tuple[FileChange, FileChange]:
    return install_target(target, root, environ, dry_run=True)


def install_target(
    target: HookTarget, root: Path, environ: Mapping[str, str], *, dry_run: bool
) -> tuple[FileChange, FileChange]:
    """Install the project's hooks of one runtime."""
    return install_with_script(
        target.path("project", root, environ),
        target.entries("project", root, environ),
        target.script("project", root, environ),
        target.script_content("project", root),
        header=target.header,
        keep_places=target.positions_matter,
        dry_run=dry_run,
    )


def _settings_change(here: Surroundings, choice: SetupChoice) -> tuple[FileChange, list[str]]:
    path = here.root / CONFIG_FILE
    if here.has_settings and here.settings.source is not None:
        return _change_of_settings(here, choice, here.settings.source)
    if not choice.commands and not choice.jobs:
        raise UsageError(
            "No test command was found here, and a guard without checks holds nobody.",
            next_step="Give the command that has to succeed: --run CMD",
        )
    above = here.settings.source
    notes = [] if above is None else [f"The settings in {above} will no longer apply in this folder."]
    return FileChange(path, None, settings_file(choice.commands, jobs=choice.jobs).encode()), notes


def _change_of_settings(here: Surroundings, choice: SetupChoice, path: Path) -> tuple[FileChange, list[str]]:
    """The settings that are there stay; what is missing is added at the end."""
    before = _content(path) or b""
    same = FileChange(path, before, before)
    stop = here.settings.stop
    if stop.has_checks:
        known = {*stop.commands, *([stop.tests.run] if stop.tests else [])}
        missing = [command.text for command in choice.commands if command.kind == "given" and command.text not in known]
        notes = [f"The checks in {path.name} stay as they are."] if missing or choice.jobs > stop.jobs else []
        if missing:
            notes.append(f"Add them yourself, if you want them: {', '.join(map(json.dumps, missing))}")
        if choice.jobs > stop.jobs:
            notes.append(f"Add `jobs = true` to [stop] in {path.name}, so that the hooks check jobs.")
        return same, notes
    if not choice.commands and not choice.jobs:
        raise UsageError(
            "No test command was found here, and a guard without checks holds nobody.",
            where=str(path),
            next_step="Give the command that has to succeed: --run CMD",
        )
    prefix = "tool.donewhen." if path.name == PROJECT_FILE else ""
    table = stop_table(choice.commands, jobs=choice.jobs, prefix=prefix)
    text = before.decode()
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = ("" if not text or text.endswith("\n") else "\n") + ("\n" if text else "")
    after = text + (gap + table).replace("\n", newline)
    if not is_valid_toml(after):
        raise ConfigError(
            f"There is a [{prefix}stop] table without checks already, so nothing is added.",
            where=str(path),
            next_step=f"Add these lines to it: {'; '.join(table.splitlines()[1:])}",
        )
    return FileChange(path, before, after.encode()), []


def _ignore_change(here: Surroundings) -> Iterator[FileChange]:
    if here.git_top is None:
        return
    path = here.root / ".gitignore"
    before = _content(path)
    text = (before or b"").decode("utf-8", "surrogateescape")
    lines = ignore_lines(text)
    if lines:
        yield FileChange(path, before, (before or b"") + lines.encode())


def _ci_change(here: Surroundings, choice: SetupChoice) -> Iterator[FileChange]:
    if choice.ci is None:
        return
    name, text = ci_text(choice.ci, jobs=choice.jobs)
    path = (here.git_top or here.root) / name
    if not path.is_relative_to(here.root):
        raise UsageError(
            "CI files belong into the top folder of the repository.",
            where=str(path),
            next_step=f"Run this there: donewhen init --ci {choice.ci}",
        )
    before = _content(path)
    if before is None:
        yield FileChange(path, None, text.encode())
    elif before != text.encode():
        raise UsageError(
            "There is such a file already, so it is left alone.",
            where=str(path),
            next_step="See docs/howto/check-in-ci.md for what to add.",
        )


def _content(path: Path) -> bytes | None:
    try:
        return read_limited(path, SETTINGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"The file can't be read: {error.strerror}.", where=str(path)) from error


def _has_project(root: Path) -> bool:
    try:
        return find_workspace(root).root == root
    except WorkspaceError:
        return False


def _notes(here: Surroundings) -> Iterator[str]:
    if here.git_top is None:
        yield "This is no git repository. The guard works without one; jobs and CI need one."
    elif here.git_top != here.root:
        yield f"This is a folder of the repository {here.git_top}: agents are only held if they are started here."
