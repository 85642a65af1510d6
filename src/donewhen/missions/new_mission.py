"""A new mission's folder: all of it or nothing, and never over one that is there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.plain_text import one_line
from donewhen.judging.competence import first_rule
from donewhen.judging.guidance import FIRST, seed_guidance
from donewhen.judging.language import find_language, shipped_languages
from donewhen.judging.mission import MISSION_FILE, Mission, read_mission
from donewhen.judging.ticket import Ticket
from donewhen.models.registry import KNOWN

TICKETS = "tickets.jsonl"
INITIAL = "initial_guidance.json"
_TAKEN = (MISSION_FILE, INITIAL, TICKETS, "guidance.json")
_LONGEST_NAME = 100

_MISSION = """\
# What is judged, in which words, and by whom. `donewhen mission check` looks at all of it.
# Only what differs from the defaults has to stand here; what is commented out below are defaults.
mission = {name}

# The language of answers and rules: {languages}, or a folder languages/NAME beside this file.
language = {language}

# Who judges and reflects: {models}. "contrast" follows written rules; it needs no download and no key.
model = "contrast"

# One ticket a line: group_id, mission, label (pass or fail), and text or evidence; cluster, if tickets belong together.
tickets = ["{tickets}"]

# {initial} holds the rules to begin with. G0 is the verdict where no rule says otherwise. Rules that
# nobody may change, whatever is learned, go there as S1, S2, …

# [verdict]                         # the mission's own words for the two verdicts
# pass = {pass_word}
# fail = {fail_word}

# [[sampler]]                       # each ticket is answered this often; the majority decides, a tie is a fail
# temperature = 0.1
# samples = 1
# [[sampler]]
# temperature = 0.4
# samples = 1
# [[sampler]]
# temperature = 0.7
# samples = 1

# [manual_review]
# min_verdict_agreement = 0.67      # below this, a verdict is shown to people
# spot_check = 0.1                  # and so many of the others
# alarm_below = 0.7                 # agreement of judge and people, over the newest 20 verdicts

# [from_job]                        # what a ticket holds that a gate makes of a job (check: judge:NAME)
# parts = ["task", "outputs", "diff", "evidence"]

# [split]                           # how tickets are divided, by cluster
# train = 0.6
# validation = 0.2
# test = 0.2

# [trial]                           # what a change must show on unseen tickets; trial = "off" for nothing
# min_tickets = 20
"""


def check_mission_name(text: str) -> str:
    """A name for a mission, or an error: one line that can be shown."""
    if not text or one_line(text, _LONGEST_NAME) != text:
        message = f"{one_line(text, 60)!r} can't be the name of a mission: one short line is."
        raise UsageError(message, where="--name")
    return text


def refuse_existing_mission(folder: Path) -> None:
    """Nothing of a mission that is there is ever written over."""
    found = next((folder / one for one in _TAKEN if os.path.lexists(folder / one)), None)
    if found is not None:
        message = "There is a mission here already." if found.name == MISSION_FILE else "The file is there already."
        raise UsageError(message, where=str(found), next_step="Choose another folder.")
    if folder.exists() and not folder.is_dir():
        raise UsageError("This is no folder.", where=str(folder))


def create_mission(
    folder: Path, name: str, language: str, tickets: Iterable[Ticket], scaffold: Sequence[str] = ()
) -> Mission:
    """Write a mission; what ``tickets`` raises, is raised, and then nothing stays. ``scaffold`` are S1, S2, …"""
    check_mission_name(name)
    words = find_language(language, folder).answer
    refuse_existing_mission(folder)
    text = _MISSION.format(
        name=_quoted(name),
        language=_quoted(language),
        languages=", ".join(shipped_languages()),
        models=", ".join(KNOWN),
        tickets=TICKETS,
        initial=INITIAL,
        pass_word=_quoted(words.pass_),
        fail_word=_quoted(words.fail),
    )
    rules = {f"S{number}": text for number, text in enumerate(scaffold, 1)} | {FIRST: first_rule(language)}
    seed_guidance(name, rules, "")
    with _new_files(folder):
        refuse_existing_mission(folder)
        _write_tickets(folder / TICKETS, tickets)
        write_atomically(folder / INITIAL, (json.dumps(rules, ensure_ascii=False, indent=2) + "\n").encode())
        # The last one, because it is what makes the folder a mission.
        write_atomically(folder / MISSION_FILE, text.encode())
        return read_mission(folder)


def ticket_line(ticket: Ticket) -> bytes:
    """A ticket as a line of tickets.jsonl."""
    data: dict[str, Any] = {"group_id": ticket.group_id, "mission": ticket.mission, "label": ticket.label}
    if ticket.cluster != ticket.group_id:
        data["cluster"] = ticket.cluster
    data |= {one: value for one in ("label_source", "label_timestamp") if (value := getattr(ticket, one))}
    evidence = dict(ticket.evidence)
    data |= evidence if evidence.keys() == {"text"} else {"evidence": evidence}
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def _write_tickets(path: Path, tickets: Iterable[Ticket]) -> None:
    temporary = path.with_name(f".donewhen-{os.urandom(8).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            for ticket in tickets:
                file.write(ticket_line(ticket))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def _new_files(folder: Path) -> Iterator[None]:
    """A folder to write into; when it goes wrong, what was written goes, and the folder if it was made for it."""
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):
        before = {path.name for path in folder.iterdir()}
        try:
            yield
        except BaseException:
            for name in (MISSION_FILE, INITIAL, TICKETS):
                if name not in before:
                    (folder / name).unlink(missing_ok=True)
            if made:
                with suppress(OSError):
                    folder.rmdir()
            raise


def _quoted(text: str) -> str:
    """A string of TOML; JSON's form of a line that can be shown is one."""
    return json.dumps(text, ensure_ascii=False)
