"""Create a mission's folder atomically, without overwriting existing files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import replacing, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.plain_text import one_line
from donewhen.judging.competence import first_rule
from donewhen.judging.guidance import FIRST, seed_guidance, sorted_keys
from donewhen.judging.language import find_language, shipped_languages
from donewhen.judging.mission import MISSION_FILE, Mission, read_mission
from donewhen.judging.ticket import Ticket
from donewhen.models.registry import KNOWN

TICKETS = "tickets.jsonl"
INITIAL = "initial_guidance.json"
_MISSION_FILES = (MISSION_FILE, INITIAL, TICKETS, "guidance.json")
_MAX_NAME_CHARS = 100

_MISSION_TEMPLATE = """\
# The settings of the mission. `donewhen mission check` validates them.
# Only settings that differ from the defaults are needed; the commented-out lines below show the defaults.
mission = {name}

# The language of answers and rules: {languages}, or a folder languages/NAME next to this file.
language = {language}

# The model that judges and reflects: {models}. "contrast" follows written rules; it needs no download and no key.
model = "contrast"

# One ticket per line: group_id, mission, label (pass or fail), text or evidence; cluster for related tickets.
tickets = ["{tickets}"]

# {initial} holds the initial rules. G0 is the default verdict if no other rule applies. Rules that
# learning must never change go there as S1, S2, …

# [verdict]                         # the mission's own words for the two verdicts
# pass = {pass_word}
# fail = {fail_word}

# [[sampler]]                       # answers per ticket; the majority decides, a tie is a fail
# temperature = 0.1
# samples = 1
# [[sampler]]
# temperature = 0.4
# samples = 1
# [[sampler]]
# temperature = 0.7
# samples = 1

# [manual_review]
# min_verdict_agreement = 0.67      # verdicts with less agreement are shown to people
# spot_check = 0.1                  # share of the other verdicts shown to people
# alarm_below = 0.7                 # alarm if judge and people agree less often, over the newest 20 verdicts

# [from_job]                        # what a gate puts into a ticket for a job (check: judge:NAME)
# parts = ["task", "outputs", "diff", "evidence"]

# [split]                           # how tickets are split, by cluster
# train = 0.6
# validation = 0.2
# test = 0.2

# [trial]                           # test each change on unseen tickets; trial = "off" disables it
# min_tickets = 20
"""


def check_mission_name(text: str) -> str:
    """Return the name of a mission; raise UsageError unless it is one short printable line."""
    if not text or one_line(text, _MAX_NAME_CHARS) != text:
        message = (
            f"{one_line(text, 60)!r} is not a valid mission name; use one line of at most {_MAX_NAME_CHARS} characters."
        )
        raise UsageError(message, where="--name")
    return text


def refuse_existing_mission(folder: Path) -> None:
    """Raise UsageError if the folder already has files of a mission."""
    existing = next((folder / name for name in _MISSION_FILES if os.path.lexists(folder / name)), None)
    if existing is not None:
        message = "A mission already exists here." if existing.name == MISSION_FILE else "The file already exists."
        raise UsageError(message, where=str(existing), next_step="Choose another folder.")
    if folder.exists() and not folder.is_dir():
        raise UsageError("This is not a folder.", where=str(folder))


def create_mission(
    folder: Path,
    name: str,
    language: str,
    tickets: Iterable[Ticket],
    scaffold: Sequence[str] = (),
    *,
    initial: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Mission:
    """Write a mission. If ``tickets`` raises, the files are removed again. ``scaffold`` becomes S1, S2, …

    ``initial`` are rules by key, instead of a scaffold; ``settings`` are written into mission.toml.
    """
    check_mission_name(name)
    words = find_language(language, folder).answer
    refuse_existing_mission(folder)
    text = _MISSION_TEMPLATE.format(
        name=_toml_string(name),
        language=_toml_string(language),
        languages=", ".join(shipped_languages()),
        models=", ".join(KNOWN),
        tickets=TICKETS,
        initial=INITIAL,
        pass_word=_toml_string(words.pass_),
        fail_word=_toml_string(words.fail),
    )
    text += settings_toml(settings or {})
    written = {f"S{number}": rule for number, rule in enumerate(scaffold, 1)} if initial is None else dict(initial)
    rules = {FIRST: first_rule(language)} | written
    rules = {key: rules[key] for key in sorted_keys(rules)}
    seed_guidance(name, rules, "")
    with _removed_on_error(folder):
        refuse_existing_mission(folder)
        _write_tickets(folder / TICKETS, tickets)
        write_atomically(folder / INITIAL, (json.dumps(rules, ensure_ascii=False, indent=2) + "\n").encode())
        # Written last, because this file makes the folder a mission.
        write_atomically(folder / MISSION_FILE, text.encode())
        return read_mission(folder)


def settings_toml(settings: Mapping[str, Any]) -> str:
    """Settings as lines of mission.toml: single values first, then tables."""
    tables = {name: value for name, value in settings.items() if isinstance(value, Mapping | list)}
    lines = [
        f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items() if name not in tables
    ]
    for name, value in tables.items():
        for row in value if isinstance(value, list) else [value]:
            lines += ["", f"[[{name}]]" if isinstance(value, list) else f"[{name}]"]
            lines += [f"{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in row.items()]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def ticket_line(ticket: Ticket) -> bytes:
    """A ticket as a line of tickets.jsonl."""
    data: dict[str, Any] = {"group_id": ticket.group_id, "mission": ticket.mission, "label": ticket.label}
    if ticket.cluster != ticket.group_id:
        data["cluster"] = ticket.cluster
    data |= {field: value for field in ("label_source", "label_timestamp") if (value := getattr(ticket, field))}
    evidence = dict(ticket.evidence)
    data |= evidence if evidence.keys() == {"text"} else {"evidence": evidence}
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def _write_tickets(path: Path, tickets: Iterable[Ticket]) -> None:
    with replacing(path) as file:
        for ticket in tickets:
            file.write(ticket_line(ticket))


@contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    """Create and lock the folder; on an error remove the new files, and the folder if it was created here."""
    created = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):
        before = {path.name for path in folder.iterdir()}
        try:
            yield
        except BaseException:
            for name in (MISSION_FILE, INITIAL, TICKETS):
                if name not in before:
                    (folder / name).unlink(missing_ok=True)
            if created:
                with suppress(OSError):
                    folder.rmdir()
            raise


def _toml_string(text: str) -> str:
    """A TOML string; for one printable line, JSON's form is valid TOML."""
    return json.dumps(text, ensure_ascii=False)
