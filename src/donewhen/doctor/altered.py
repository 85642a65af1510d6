"""Hooks that work in a test but are not as donewhen writes them: what they do at other times is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from donewhen.adapters.diagnosis import Diagnosis
from donewhen.adapters.hook_targets import Scope
from donewhen.config.agent_runtimes import HOOK_SCRIPT
from donewhen.config.hook_line import own_line, uses_script
from donewhen.config.hook_script import program_of
from donewhen.doctor.hook_settings import RuntimeSettings, Where
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import HOOK_FILE


def altered_hooks(runtime: RuntimeSettings, where: Where, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """The command lines and the script that no version of donewhen has written."""
    name = f"{runtime.name} {where} changed"
    scope: Scope = "user" if where == "user" else "project"
    advice = f"donewhen hooks install --{runtime.name}{' --user' if where == 'user' else ''}"
    entries = runtime.entries(where)
    ours = {entry.command for entry in runtime.target.entries(scope, runtime.root, environ)}
    script = runtime.target.script(scope, runtime.root, environ)
    in_project = runtime.target.script("project", Path(), {}).as_posix()
    changed = [
        entry for entry in entries if entry.command not in ours and own_line(entry.command, in_project, "") is None
    ]
    if changed:
        detail = f"the line of {changed[0].place} is not one that donewhen writes, so it may not always hold"
        yield Diagnosis(name, "note", detail, advice)
    if any(uses_script(entry.command) and HOOK_SCRIPT in entry.command for entry in entries):
        content = _text(script)
        if content is not None and program_of(content) is None:
            detail = f"{script} is not a script that donewhen writes, so it may not always hold"
            yield Diagnosis(f"{name} script", "note", detail, advice)


def _text(path: Path) -> str | None:
    try:
        return read_limited(path, HOOK_FILE).decode("utf-8", "replace")
    except (OSError, DonewhenError):
        return None
