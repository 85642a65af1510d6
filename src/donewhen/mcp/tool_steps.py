"""Next steps as tools: the same steps are shell commands elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class _Tool:
    """The tool that does what a command does; ``options`` maps the command's options to parameters."""

    name: str
    takes_job: bool = True
    options: Mapping[str, str] = field(default_factory=dict)


_TOOLS = {
    "status": _Tool("list_jobs", False),
    "why": _Tool("show_job"),
    "contract diff": _Tool("show_job"),
    "reward": _Tool("check_job"),
    "next": _Tool("next_action"),
    "ready": _Tool("ready_jobs", False),
    "start": _Tool("start_job"),
    "run": _Tool("run_evidence", options={"--criterion": "criterion", "--again": "again"}),
    "complete": _Tool("complete_job"),
    "ask": _Tool("ask_person", options={"--question": "question"}),
    "block": _Tool("block_job", options={"--reason": "reason"}),
    "dispute": _Tool("dispute", options={"--reason": "reason"}),
    "check": _Tool("check_stop", False),
}
PEOPLES_VERBS = frozenset({"agree", "decide", "review", "sign-off"})
"""What only a person can do, so that there is no tool for it."""

_VERBS = "|".join(sorted((verb.replace(" ", r" ") for verb in _TOOLS), key=len, reverse=True))
_COMMAND = re.compile(
    rf"(?P<env>\bDONEWHEN_DEBUG=1 )?\bdonewhen (?P<verb>{_VERBS})(?![\w-])"
    r"(?P<job> (?!-)[A-Za-z0-9_](?:[\w.:-]*\w)?)?"
    r'(?P<options>(?: --[a-z][a-z-]*(?: (?:"[^"]*"|[^\s",;-][^\s",;]*))?)*)'
)
_OPTION = re.compile(r'(--[a-z][a-z-]*)(?: (?:"([^"]*)"|(\S+)))?')
_BARE = re.compile(r"(?:DONEWHEN_DEBUG=1 )?donewhen ([a-z][a-z-]*)")
_IN_A_SENTENCE = re.compile(r": donewhen ([a-z][a-z-]*)")


def tool_step(step: str) -> str:
    """Return a next step with its commands as calls of tools. For a command without a tool, say who runs it."""
    text = _COMMAND.sub(_as_call, step)
    bare = _BARE.match(text)
    if bare is None:
        within = _IN_A_SENTENCE.search(text)
        # A sentence with what a person does says so itself.
        return text if within is None or within[1] in PEOPLES_VERBS else f"No tool does this. In a shell: {text}"
    if bare[1] in PEOPLES_VERBS:
        return f"No tool does this. A person has to: {text}"
    return f"No tool does this. In a shell: {text}"


def _as_call(match: re.Match[str]) -> str:
    tool = _TOOLS[match["verb"]]
    if match["env"] is not None:
        # A variable of the server's own process can't be set by a tool.
        return match[0]
    arguments = [f'job="{match["job"].strip()}"'] if match["job"] and tool.takes_job else []
    for name, quoted, word in _OPTION.findall(match["options"] or ""):
        if name in tool.options:
            value = "true" if not (quoted or word) else f'"{quoted or word}"'
            arguments.append(f"{tool.options[name]}={value}")
    # A word after a command without a job belongs to the sentence.
    rest = "" if tool.takes_job else match["job"] or ""
    call = tool.name if tool.takes_job and not arguments else f"{tool.name}({', '.join(arguments)})"
    return f"{call}{rest}"
