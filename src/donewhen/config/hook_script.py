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
# `event` is read piece by piece until it is a whole JSON object: a runtime may write it slowly, and keep the stream
# open afterwards. So all of it is known if donewhen can't be run. What is not complete in time is passed on as it
# comes, by a process of its own.
_TEMPLATE = r"""#!/bin/sh
# Written by `donewhen hooks install`. An agent runtime starts it when an agent wants to stop, or when it has ended.
# It passes the event to donewhen. If donewhen can't be run, it refuses the stop once and says so.

root=ROOT
program() { PROGRAM "$@"; }

exec 3<&0
piece() {
    dd bs=65536 count=1 <&3 2>/dev/null &
    reader=$!
    (
        trap 'kill "$timer"; exit' TERM
        sleep "$1" 3<&- &
        timer=$!
        wait "$timer"
        kill "$reader"
    ) >/dev/null 2>&1 &
    guard=$!
    wait "$reader"
    kill "$guard" 2>/dev/null
    echo .
}

# Whether the event ends here. Escaped characters are removed first, so that every quote begins or ends a string.
is_whole() {
    printf %s "$event" | sed 's/\\./_/g' | awk '
        BEGIN { RS = "\"" }
        NR % 2 { depth += gsub(/[[{]/, ""); depth -= gsub(/[]}]/, "") }
        END { exit !(NR % 2 && depth == 0) }'
}

event='' wait=20 until=
while part=$(piece "$wait") && part=${part%.} && [ -n "$part" ]; do
    event=$event$part wait=2
    case $part in *\} | *\}[[:space:]] | *\}[[:space:]][[:space:]]) is_whole && break ;; esac
    [ "${until:=$(($(date +%s) + 20))}" -gt "$(date +%s)" ] || break
done
{ { printf %s "$event" && [ -n "$event" ] && cat <&3; } 2>/dev/null & } | program hook "$@" 3<&- && exit 0
exec 3<&-

# From here on donewhen could not be run. Was this agent refused before? Only the field of the event itself counts.
refused_before() {
    printf %s "$event" | sed 's/\\./_/g' | awk '
        BEGIN { RS = "\"" }
        NR % 2 == 0 { key = ($0 == "stop_hook_active"); next }
        key && depth == 1 && /^[ \t\r\n]*:[ \t\r\n]*true/ { found = 1 }
        { depth += gsub(/[[{]/, ""); depth -= gsub(/[]}]/, ""); key = 0 }
        END { exit !found }'
}

record() {
    [ -n "$root" ] && project=$(cd "$root" && pwd -P) || return 0
    session=$(printf %s "$event" | sed -n 's/.*"session_\{0,1\}[iI]d": *"\([A-Za-z0-9-]\{1,64\}\)".*/\1/p' | sed 1q)
    row=$(printf '{"at": "%s", "session": "%s", "end": "%s", "status": "unverified", "how": "%s", "feedback": "%s"}' \
        "$(date -u +%Y-%m-%dT%H:%M:%S+00:00)" "$session" "not-run-$session" "$1" 'donewhen could not be run.')
    mkdir -p "$project/.donewhen/state" &&
        printf '%s\n' "$row" >>"$project/.donewhen/state/unverified.jsonl" && return 0
    # The project's folder can't be used. `donewhen hooks status` looks here for the ends of all projects.
    state=${XDG_STATE_HOME:-$HOME/.local/state}/donewhen/ends
    mkdir -p "$state" && printf '%s, "project": "%s"}\n' "${row%\}}" \
        "$(printf %s "$project" | sed 's/[\\"]/\\&/g')" >>"$state/not-run.jsonl"
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
