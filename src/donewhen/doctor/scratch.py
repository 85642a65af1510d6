"""A scratch home and a scratch project with the hooks of the real ones, in which a client can be tried.

What comes in: the hooks for a stop and the switches that decide whether they run. Keys, addresses, permissions, servers
and the hooks of other events stay outside, and nothing in the real project or the real home is written. Only a client
that runs nothing of them, and says which settings it rejects, gets all settings.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.config import CONFIG_FILE
from donewhen.config.project_hooks import Json
from donewhen.doctor.hook_settings import Entry, RuntimeSettings, SettingsFile, entries_in

PROMPT = "Say that you are done."
_INHERITED = ("PATH", "SHELL", "BASH_ENV", "ENV", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "LD_PRELOAD")
_INHERITED_PREFIXES = ("PYTHON", "LC_")
_MOST_FILES = 200
_LARGEST_FILE = 1 << 20
_SCRIPTS = "hooks"
_STARTS_A_PROGRAM = re.compile(r"(?:helper|refresh|export|command|script)$", re.IGNORECASE)
"""Settings with a command line that a client might run for something else than a hook."""
_BELOW_ROOT = re.compile(r"""\$\{?root\}?"?/"?(?:'([^'/]+)|([^/\s"';|&()$]+))""")


@dataclass(frozen=True)
class Scratch:
    """The folders, and the name of the file that the scratch project's settings ask for."""

    home: Path
    project: Path
    missing: str


@contextmanager
def scratch_of(
    runtime: RuntimeSettings, *, foreign: bool = True, without: Collection[str] = (), whole: bool = False
) -> Iterator[Scratch]:
    """Create the folders, with or without the hooks of others, and remove them at the end.

    ``without`` are variables to leave out of `env` blocks. ``whole`` copies all settings, for a client that is started
    in a way in which it runs nothing of them.
    """
    with tempfile.TemporaryDirectory(prefix="donewhen-doctor-", ignore_cleanup_errors=True) as folder:
        base = Path(folder).resolve()
        scratch = Scratch(base / "home", base / "project", f"donewhen-doctor-{os.urandom(6).hex()}")
        scratch.home.mkdir()
        scratch.project.mkdir()
        (scratch.project / ".git").mkdir()
        (scratch.project / CONFIG_FILE).write_text(f"[stop]\nfiles = [{json.dumps(scratch.missing)}]\n")
        for file in runtime.files:
            if file.data:
                path = scratch_path(runtime, file, scratch)
                path.parent.mkdir(parents=True, exist_ok=True)
                kept = _whole(runtime, file) if whole else _reduced(runtime, file, foreign, without)
                path.write_text(json.dumps(kept))
                if foreign and not whole and file.where != "switch":
                    _copy_scripts(file.path.parent / _SCRIPTS, path.parent / _SCRIPTS)
        _provide_programs(runtime, scratch)
        yield scratch


def inherited_from(
    runtime: RuntimeSettings, environ: Mapping[str, str], without: Collection[str] = ()
) -> dict[str, str]:
    """The variables that decide whether and how a hook's command line runs; no keys, no addresses."""
    names = {*_INHERITED, *runtime.target.client.hook_variables} - set(without)
    return {name: value for name, value in environ.items() if name in names or name.startswith(_INHERITED_PREFIXES)}


def foreign_stop_hooks(runtime: RuntimeSettings) -> list[tuple[SettingsFile, Entry]]:
    """The hooks of others for the event at which ours holds an agent."""
    events = runtime.with_kind("stop")
    return [
        (file, entry)
        for file in runtime.hook_files
        for entry in entries_in(file)
        if entry.event in events and entry.kind is None
    ]


def scratch_path(runtime: RuntimeSettings, file: SettingsFile, scratch: Scratch) -> Path:
    if file.where == "user":
        return scratch.home / runtime.target.about.folder_in_home / file.path.name
    return scratch.project / file.path.relative_to(runtime.root)


def _whole(runtime: RuntimeSettings, file: SettingsFile) -> Json:
    """All settings, for a client that only says which of them it rejects; values of the same types for some."""
    client = runtime.target.client
    kept = {
        key: "true" if isinstance(value, str) and _STARTS_A_PROGRAM.search(key) else value
        for key, value in file.data.items()
    }
    block = kept.get(client.environment_key) if client.environment_key else None
    if isinstance(block, dict):
        texts = {name: value for name, value in block.items() if isinstance(value, str)}
        others = {name: value for name, value in block.items() if not isinstance(value, str)}
        kept[str(client.environment_key)] = inherited_from(runtime, texts) | others
    return kept


def _reduced(runtime: RuntimeSettings, file: SettingsFile, foreign: bool, without: Collection[str]) -> Json:
    client = runtime.target.client
    kept = {key: file.data[key] for key in (*client.switches, *runtime.target.header) if key in file.data}
    block = file.data.get(client.environment_key) if client.environment_key else None
    if isinstance(block, dict):
        texts = {name: str(value) for name, value in block.items()}
        kept[str(client.environment_key)] = inherited_from(runtime, texts, without)
    events = file.data.get("hooks")
    if isinstance(events, dict) and file.where != "switch":
        kept["hooks"] = {
            event: _without_foreign(groups, file) if not foreign else groups
            for event, groups in events.items()
            if event in runtime.with_kind("stop")
        }
    return kept


def _without_foreign(groups: object, file: SettingsFile) -> object:
    ours = {id(entry.hook) for entry in entries_in(file) if entry.kind is not None}
    if not isinstance(groups, list):
        return groups
    return [
        {**group, "hooks": [hook for hook in group["hooks"] if id(hook) in ours]}
        for group in groups
        if isinstance(group, dict) and isinstance(group.get("hooks"), list)
    ]


def _copy_scripts(source: Path, target: Path) -> None:
    """Copy the folder in which people keep the programs of their hooks."""
    with suppress(OSError):
        files = [path for path in sorted(source.rglob("*"))[:_MOST_FILES] if path.is_file() and not path.is_symlink()]
        for path in files:
            if path.stat().st_size <= _LARGEST_FILE:
                copy = target / path.relative_to(source)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)


def _provide_programs(runtime: RuntimeSettings, scratch: Scratch) -> None:
    """Make reachable what the command lines start below the project: a copy of the script, and links to the rest."""
    script = runtime.target.script("project", runtime.root, {})
    lines = [entry.command for file in runtime.files for entry in entries_in(file)]
    if script.is_file():
        lines.append(script.read_text(encoding="utf-8", errors="replace"))
        copy = scratch.project / script.relative_to(runtime.root)
        copy.parent.mkdir(parents=True)
        shutil.copy(script, copy)
    variable = runtime.target.about.project_variable
    for name in sorted({name for line in lines for name in folders_used(line, variable)}):
        source, link = runtime.root / name, scratch.project / name
        if source.exists() and not link.exists():
            link.symlink_to(source)


def folders_used(line: str, variable: str | None) -> list[str]:
    """The names directly below the project that a command line or a script uses."""
    text = line if variable is None else line.replace(variable, "root")
    names = [quoted or plain for quoted, plain in _BELOW_ROOT.findall(text)]
    return [name for name in names if name not in (".", "..")]
