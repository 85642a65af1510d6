"""Which hooks in a project's terms only replace what an earlier version of donewhen had written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from donewhen.config.agent_runtimes import HOOK_SCRIPT, PROJECT_HOOK_SCRIPTS
from donewhen.config.hook_line import LineMeaning, own_line
from donewhen.config.hook_script import program_of_term, script_term

_TERM = re.compile(r"(?P<place>(?P<file>[^:]+): [^:]+): (?P<command>.*) \[(?P<timeout>\d+) s\]", re.DOTALL)


class _Hook(NamedTuple):
    """What a hook does, whichever version of donewhen has written it."""

    place: str
    """The file, the event and the matcher."""
    meaning: LineMeaning
    timeout: str


def renewed_hooks(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """The hooks that are written differently now but do the same, each with what replaces it; the same for the script.

    Only lines and scripts that are exactly as a version of donewhen writes them are recognized.
    """
    renewed: dict[str, str] = {}
    old_scripts, new_scripts = _scripts(before), _scripts(after)
    for name, old in old_scripts.items():
        new = new_scripts.get(name, old)
        program = program_of_term(name, new)
        is_same = program == program_of_term(name, old) or old == script_term(name, None)
        if old != new and program is not None and is_same:
            renewed[old] = new
    forms: dict[_Hook, tuple[int, str]] = {}
    for term in after:
        if (read := _read(term, new_scripts)) is not None:
            hook, form = read
            forms[hook] = max(forms.get(hook, (form, term)), (form, term))
    for term in before:
        read = None if term in after else _read(term, old_scripts)
        if read is not None and read[0] in forms and forms[read[0]][0] >= read[1]:
            renewed[term] = forms[read[0]][1]
    return renewed


def _scripts(terms: Sequence[str]) -> dict[str, str]:
    """The terms of scripts, by the names of the scripts."""
    return {name: term for term in terms for name in PROJECT_HOOK_SCRIPTS if term.startswith(f"{name}: ")}


def _read(term: str, scripts: Mapping[str, str]) -> tuple[_Hook, int] | None:
    """The hook that a term names, and the form of its line; None if donewhen has not written it."""
    found = _TERM.fullmatch(term)
    if found is None:
        return None
    script = f"{found['file'].rpartition('/')[0]}/{HOOK_SCRIPT}"
    program = program_of_term(script, scripts[script]) if script in scripts else None
    line = own_line(found["command"], script, program)
    if line is None:
        return None
    return _Hook(found["place"], line.meaning, found["timeout"]), line.form
