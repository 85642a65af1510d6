"""When a judge is not asked, because its model is elsewhere: at another address than agreed, or where secrets may not
be sent. A person decides then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.foundation.secret_places import SecretPlace, find_secrets

if TYPE_CHECKING:
    from donewhen.judging.mission import Mission

_MAX_LISTED = 3
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")


def why_withheld(
    mission: Mission,
    evidence: Mapping[str, str],
    uncut: Callable[[], Mapping[str, str]] | None = None,
) -> str | None:
    """Return why the texts are not sent to the mission's model; None if they may be.

    ``uncut`` returns the texts before they were cut, for the numbers of lines.
    """
    from donewhen.models.addresses import other_address, runs_in_process

    model = mission.settings.model
    if runs_in_process(model):
        return None
    other = other_address(model)
    if other is not None:
        led = f"{other.variable} leads the judge's model {model} to {one_line(other.address, 100)}"
        agreed = f"{led}, and the agreed address is {other.expected}"
        if other.variable.endswith("_BASE_URL"):
            return f'{agreed}; to use the other one, write model = "{model}@URL" in the mission, and agree again'
        return f"{agreed}; unset it, or exempt that server in NO_PROXY"
    places = [*_secrets(evidence, mission.settings.from_job.may_send)]
    if not places:
        return None
    texts = uncut() if uncut is not None else evidence
    named = dict.fromkeys(
        f"{one_line(_place(name, secret, texts.get(name, '')))} ({secret.kind})" for name, secret in places
    )
    return (
        f"{join_limited([*named], _MAX_LISTED)} looks like a secret, which is not sent to {model}; if it may be sent, "
        "add the text to from_job.may_send in the mission and agree again"
    )


def _secrets(evidence: Mapping[str, str], allowed: tuple[str, ...]) -> list[tuple[str, SecretPlace]]:
    texts = {_plain(text) for text in allowed}
    return [
        (name, secret)
        for name, text in evidence.items()
        for secret in (*find_secrets(text), *find_secrets(name))
        if not texts & {_plain(secret.text), _plain(text.split("\n")[secret.line - 1].lstrip("+-"))}
    ]


def _place(name: str, secret: SecretPlace, uncut: str) -> str:
    """The file and the line, if they are known. The text may have been cut before this place."""
    whole = next((place for place in find_secrets(uncut) if place.text == secret.text), secret)
    if name.startswith("output "):
        return f"{name.removeprefix('output ')}:{whole.line}"
    found = _in_diff(uncut, whole.line) if name == "diff" else None
    return f"line {whole.line} of the {name}" if found is None else found


def _in_diff(diff: str, line: int) -> str | None:
    """The file and the line that a line of a diff is about; None before the first change."""
    file, at = "", 0
    for text in diff.split("\n")[:line]:
        if text.startswith("+++ "):
            file = text.removeprefix("+++ ")
        elif found := _HUNK.match(text):
            at = int(found[1]) - 1
        elif not text.startswith("-"):
            at += 1
    return f"{file}:{at}" if file and at > 0 else None


def _plain(text: str) -> str:
    return " ".join(text.split())
