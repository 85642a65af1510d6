"""The command lines of donewhen's hooks: how they are written, and what a line of any version means.

Claude Code shows the line to the model with every refusal, so it says no more than necessary.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from donewhen.config.agent_runtimes import HOOK_SCRIPT

_LINES_OF_OURS = re.compile(r"\bdonewhen\b[^|&;\n]* hook [a-z-]+ --runtime\b|\bdonewhen/hook['\"]? [a-z-]+ --runtime\b")
_NAMES = r"(?P<kind>[a-z-]+) --runtime (?P<runtime>[a-z-]+)"
# Some runtimes have no limit of their own. There, a line whose script is missing refuses only once, too.
_REFUSE_ONCE = (
    """{ dd bs=65536 count=1 2>/dev/null | grep -q '"stop_hook_active": *true' && exit 0; """
    """echo "The script of donewhen's hook is missing, so this stop is not verified." >&2; exit 2; }"""
)
_OLD_PROGRAM = r"""(?P<program>(?:"\$[A-Z_]+")?[^|;&<>()$`"\n]+) hook """
_OLD_FALLBACK = (
    """grep -q '"stop_hook_active": *true' && exit 0; echo "donewhen could not be run, so this stop is not verified. """
    """Install it, or remove its hooks." >&2; exit 2; }"""
)
# Copilot CLI lets an agent stop at status 2, so its line gives the refusal itself.
_ANSWER = """echo '{"decision": "block", "reason": "donewhen could not be run, so this stop is not verified."}'"""
_PROJECT_SCRIPT = r'sh "\$\{[A-Z_]+:-\.\}"/(?P<script>[A-Za-z0-9./_-]+) '


def _once_a_session(variable: str, escaped: Callable[[str], str] = str) -> str:
    before, after = '{ mkdir "${TMPDIR:-/tmp}/donewhen-$', '" 2>/dev/null && exit 2; exit 0; }'
    return escaped(before) + variable + escaped(after)


_FORMS = tuple(
    re.compile(form)
    for form in (
        # As written by earlier versions, which had the whole fallback in the line, or none.
        _OLD_PROGRAM + _NAMES,
        _OLD_PROGRAM + _NAMES + re.escape(f" || {{ {_OLD_FALLBACK}"),
        re.escape("""e=$(cat); printf %s "$e" | """)
        + _OLD_PROGRAM
        + _NAMES
        + re.escape(f""" || {{ printf %s "$e" | {_OLD_FALLBACK}"""),
        # As written now.
        _PROJECT_SCRIPT + _NAMES + r" \|\| exit 2",
        r'd=\$PWD; until \[ -f "\$d"/(?P<script>[A-Za-z0-9./_-]+) \] \|\| \[ -z "\$d" \]; do d=\$\{d%/\*\}; done; '
        r'\[ -f "\$d"/(?P=script) \] \|\| '
        + re.escape(_REFUSE_ONCE)
        + r'; sh "\$d"/(?P=script) '
        + _NAMES
        + r" \|\| exit 2",
        _PROJECT_SCRIPT + _NAMES + r" \|\| " + re.escape(_ANSWER),
        _PROJECT_SCRIPT + _NAMES + r" \|\| " + _once_a_session("[A-Z_]+", re.escape),
    )
)
_FIRST_WITH_SCRIPT = 3


HookLine = Callable[[str, str, str], str]
"""Writes the line that starts a script, for a kind of hook and a runtime."""


@dataclass(frozen=True)
class LineMeaning:
    """What a line does: which hook it is, and the command that it starts."""

    kind: str
    runtime: str
    program: str


@dataclass(frozen=True)
class OwnLine:
    """A line that a version of donewhen has written."""

    meaning: LineMeaning
    form: int
    """A later form is never more lenient than an earlier one."""


def is_own_line(command: str) -> bool:
    """Whether a command line calls donewhen as a hook."""
    return _LINES_OF_OURS.search(command) is not None


def uses_script(command: str) -> bool:
    """Whether a command line starts a script of donewhen."""
    return is_own_line(command) and HOOK_SCRIPT in command


def hook_line(script: str, kind: str, runtime: str) -> str:
    """The line that starts a script, whose path is in shell syntax."""
    return f"sh {script} {kind} --runtime {runtime} || exit 2"


def script_below(variable: str, name: str) -> str:
    """A script of the project, in the folder that a variable of the runtime names, or else in the current folder."""
    return f'"${{{variable}:-.}}"/{name}'


def careful_hook_line(script: str, kind: str, runtime: str) -> str:
    """The line for a runtime that has no limit of refusals: it refuses only once if the script is missing."""
    return f"[ -f {script} ] || {_REFUSE_ONCE}; {hook_line(script, kind, runtime)}"


def answering_hook_line(script: str, kind: str, runtime: str) -> str:
    """The line for a runtime that lets an agent stop at status 2: without a script it answers itself."""
    return f"sh {script} {kind} --runtime {runtime} || {_ANSWER}"


def hook_line_once_a_session(variable: str) -> HookLine:
    """The line for a runtime that would ask for ever: without a script it refuses once in each session.

    ``variable`` contains the id of the session.
    """
    return lambda script, kind, runtime: f"sh {script} {kind} --runtime {runtime} || {_once_a_session(variable)}"


def nearest_hook_line(name: str, kind: str, runtime: str) -> str:
    """A careful line for a runtime that doesn't say where the project is.

    It starts the nearest script of this name, in the current folder or one above it.
    """
    script = f'"$d"/{name}'
    find = f'd=$PWD; until [ -f {script} ] || [ -z "$d" ]; do d=${{d%/*}}; done; '
    return find + careful_hook_line(script, kind, runtime)


def own_line(command: str, script: str, script_program: str | None) -> OwnLine | None:
    """What a project's line does, if a version of donewhen has written exactly this line; else None.

    ``script`` is the name of the script beside the settings, and ``script_program`` what it starts; None if donewhen
    has not written it.
    """
    for form, pattern in enumerate(_FORMS):
        if (found := pattern.fullmatch(command)) is None:
            continue
        starts_script = form >= _FIRST_WITH_SCRIPT
        program = script_program if starts_script else _with_root(found["program"])
        if program is None or (starts_script and found["script"] != script):
            return None
        return OwnLine(LineMeaning(found["kind"], found["runtime"], program), min(form, _FIRST_WITH_SCRIPT))
    return None


def program_in_project(path: str) -> str:
    """How the script names a program in the project's own folder."""
    return f'"$root"/{shlex.quote(path)}'


def _with_root(program: str) -> str:
    """A program of an old line as a script names it."""
    return re.sub(r'^"\$[A-Z_]+"/', '"$root"/', program)
