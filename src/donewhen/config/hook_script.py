"""The script that an installed hook starts: it passes the event to donewhen, and refuses once if that can't be run.

The line in a runtime's settings file is short, because runtimes show it to the model with every refusal. What has to be
done if donewhen is missing is in this script instead. It lies beside the settings, which runtimes protect from agents.
A project's script is committed and its hash is agreed.
"""

from __future__ import annotations

import hashlib
import re

NOT_RUN = "donewhen could not be run, so this stop is not verified. Report this to the person you work for."

_FILLED_IN = re.compile(
    r"^root=(?:|\$\{0%/(?P<folder>[A-Za-z0-9./_-]+)/donewhen/hook\})\nprogram\(\) \{ (?P<program>.+) \"\$@\"; \}$",
    re.MULTILINE,
)
# `head` is the beginning of the event and has everything that is needed if donewhen can't be run. The rest is passed on
# by a process of its own, so that nothing waits for the end of a stream that the runtime keeps open.
_TEMPLATE = r"""#!/bin/sh
# Written by `donewhen hooks install`. An agent runtime starts it when an agent wants to stop, or when it has ended.
# It passes the event to donewhen. If donewhen can't be run, it refuses the stop once and says so.

root=ROOT
program() { PROGRAM "$@"; }

exec 3<&0
head=$(
    dd bs=65536 count=1 <&3 2>/dev/null &
    reader=$!
    (
        trap 'kill "$timer"; exit' TERM
        sleep 20 3<&- &
        timer=$!
        wait "$timer"
        kill "$reader"
    ) >/dev/null 2>&1 &
    guard=$!
    wait "$reader"
    kill "$guard" 2>/dev/null
    echo .
)
head=${head%.}
{ { printf %s "$head" && [ -n "$head" ] && cat <&3; } 2>/dev/null & } | program hook "$@" 3<&- && exit 0
exec 3<&-

# From here on donewhen could not be run. Was this agent refused before? Escaped characters are removed first, so that
# every quote begins or ends a string, and only the field of the event itself counts.
refused_before() {
    printf %s "$head" | sed 's/\\./_/g' | awk '
        BEGIN { RS = "\"" }
        NR % 2 == 0 { key = ($0 == "stop_hook_active"); next }
        key && depth == 1 && /^[ \t\r\n]*:[ \t\r\n]*true/ { found = 1 }
        { depth += gsub(/[[{]/, ""); depth -= gsub(/[]}]/, ""); key = 0 }
        END { exit !found }'
}

record() {
    [ -n "$root" ] || return 0
    session=$(printf %s "$head" | sed -n 's/.*"session_\{0,1\}[iI]d": *"\([A-Za-z0-9-]\{1,64\}\)".*/\1/p' | sed 1q)
    mkdir -p "$root/.donewhen/state" &&
        printf '{"at": "%s", "session": "%s", "end": "%s", "status": "unverified", "how": "%s", "feedback": "%s"}\n' \
            "$(date -u +%Y-%m-%dT%H:%M:%S+00:00)" "$session" "not-run-$session" "$1" 'donewhen could not be run.' \
            >>"$root/.donewhen/state/unverified.jsonl"
} 2>/dev/null

case $1 in
session-end | stop-failure)
    record "$1"
    exit 0
    ;;
esac
if refused_before; then
    record "$1"
    exit 0
fi
echo "NOT_RUN" >&2
exit 2
"""
_TEMPLATES = (_TEMPLATE,)
"""Every version of the script, the newest first. Older ones stay, so that a project's agreed script is recognized."""


def script_for(program: str, folder: str | None = None) -> str:
    """The script that starts ``program``, a command in shell syntax.

    ``folder`` is where the settings lie in a project, which is ``$root`` then; None outside of projects.
    """
    return _filled(_TEMPLATES[0], program, folder)


def program_of(content: str) -> str | None:
    """The command that a script starts, if a version of donewhen has written exactly this script; else None."""
    found = _FILLED_IN.search(content)
    if found is None:
        return None
    program, folder = found["program"], found["folder"]
    return program if content in (_filled(template, program, folder) for template in _TEMPLATES) else None


def is_current(content: str) -> bool:
    """Whether this version writes this script, for some program."""
    found = _FILLED_IN.search(content)
    return found is not None and content == script_for(found["program"], found["folder"])


def script_term(name: str, content: bytes | None) -> str:
    """How a project's terms name a script: by its hash, and by what it starts if donewhen has written it."""
    if content is None:
        return f"{name}: missing"
    program = program_of(content.decode("utf-8", "replace"))
    starts = "" if program is None else f" starts {program}"
    return f"{name}: sha256:{hashlib.sha256(content).hexdigest()}{starts}"


def program_of_term(name: str, term: str) -> str | None:
    """What a script starts, by its term; None unless the hash is that of a script that donewhen has written."""
    digest, starts, program = term.removeprefix(f"{name}: sha256:").partition(" starts ")
    folder = name.removesuffix("/donewhen/hook")
    hashes = (hashlib.sha256(_filled(template, program, folder).encode()).hexdigest() for template in _TEMPLATES)
    return program if starts and digest in hashes else None


def _filled(template: str, program: str, folder: str | None) -> str:
    root = "" if folder is None else f"${{0%/{folder}/donewhen/hook}}"
    # What is not ours comes last, since it might have these words in it.
    return template.replace("NOT_RUN", NOT_RUN, 1).replace("ROOT", root, 1).replace("PROGRAM", program, 1)
