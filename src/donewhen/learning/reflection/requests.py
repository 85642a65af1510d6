"""The two model requests of reflection: which cases have no evidence, and which changes the others suggest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.judging.guidance import FIRST, Guidance
from donewhen.judging.mission import Mission
from donewhen.judging.prompt_rendering import escape_block, evidence_block, shared_prompt_part
from donewhen.judging.ticket import Ticket
from donewhen.judging.verdict import Verdict
from donewhen.learning.reflection.answer_schemas import DECISION_SCHEMA, OPS_SCHEMA
from donewhen.models.roles import Case, Prompt, ReflectionRequest

_MAX_CASE_SHARE = 0.8
"""Share of the prompt that a single case may take; a longer case is cut in the middle."""


class PackedCases(NamedTuple):
    """The cases that fit into one prompt, their text, and the cases that don't fit."""

    cases: tuple[Case, ...]
    text: str
    waiting: tuple[Case, ...]


def reflection_case(ticket: Ticket, verdict: Verdict) -> Case:
    """A judged ticket as a case for reflection."""
    assert ticket.label is not None  # noqa: S101 - only labelled tickets are learned from
    return Case(
        ticket.key,
        ticket.label,
        ticket.evidence,
        verdict.verdict,
        verdict.reason,
        verdict.passes,
        verdict.fails,
        verdict.malformed,
        ticket.cluster,
    )


def pack_cases(cases: Sequence[Case], mission: Mission, shared: int) -> PackedCases:
    """Pack as many cases as fit, in order. The first always fits."""
    room = max(1000, mission.settings.reflection.max_prompt_chars - shared)
    parts: list[str] = []
    used = 0
    for number, case in enumerate(cases):
        part = _render_case(case, mission, int(room * _MAX_CASE_SHARE))
        if parts and used + len(part) > room:
            return PackedCases(tuple(cases[:number]), "".join(parts), tuple(cases[number:]))
        parts.append(part)
        used += len(part)
    return PackedCases(tuple(cases), "".join(parts), ())


def decision_request(mission: Mission, guidance: Guidance, packed: PackedCases, attempt: int) -> ReflectionRequest:
    """The request of the decision pass."""
    return ReflectionRequest(
        Prompt(shared_prompt(mission, guidance, "decision"), packed.text),
        guidance.rules,
        packed.cases,
        mission.language.name,
        DECISION_SCHEMA,
        attempt=attempt,
    )


def ops_request(mission: Mission, guidance: Guidance, packed: PackedCases, attempt: int) -> ReflectionRequest:
    """The request of the ops pass."""
    return ReflectionRequest(
        Prompt(shared_prompt(mission, guidance, "ops"), packed.text),
        guidance.rules,
        packed.cases,
        mission.language.name,
        OPS_SCHEMA,
        mission.settings.reflection.max_operations,
        attempt,
    )


def shared_prompt(mission: Mission, guidance: Guidance, prompt: str) -> str:
    """The part of a reflection prompt that all batches share."""
    settings = mission.settings
    return shared_prompt_part(
        guidance,
        mission.language,
        prompt,
        g0=FIRST,
        max_length=settings.rules.max_length,
        max_operations=settings.reflection.max_operations,
    )


def _render_case(case: Case, mission: Mission, limit: int) -> str:
    words = mission.language.answer
    verdict_words = {"pass": words.pass_, "fail": words.fail}
    judged = verdict_words[case.verdict] if case.verdict else "-"
    head = f'\n<case key={json.dumps(case.ticket_key, ensure_ascii=False)} label="{verdict_words[case.label]}">\n'
    votes = f"{words.pass_} {case.passes}, {words.fail} {case.fails}"
    message = f"{words.verdict}: {judged} ({votes})\n{words.reason}: {escape_block(one_line(case.reason, 300))}\n"
    return f"{head}{message}{evidence_block(case.evidence, limit)}\n</case>\n"
