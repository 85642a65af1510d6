"""Small missions on disk, models that answer from the prompt they are given, and a run of learning in one call."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from donewhen.judging.guidance import Guidance, seed_guidance
from donewhen.judging.language import Language, find_language
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.mission_budget import open_answer_store
from donewhen.judging.mission_settings import Rules
from donewhen.judging.verdict import Signals, Verdict
from donewhen.learning.reflection.proposals import OpsPass, ReadingTerms, read_proposal
from donewhen.learning.reflection.strict_json import UnusableAnswer
from donewhen.learning.running.events import RunEvent
from donewhen.learning.running.learner import Learner
from donewhen.learning.running.recorder import Watcher
from donewhen.learning.running.run_folders import (
    lock_runs,
    metered_model_for,
    open_log,
    prepare_resumed_run,
    prepare_run,
)
from donewhen.learning.running.run_state import RunState
from donewhen.models.roles import Binary, Case, Model, ReflectionRequest, RolloutRequest
from donewhen.testing.clock import ManualClock
from donewhen.testing.models import ScriptedJudge

NAME = "checkout"
RULES = {"S1": "Only what the page shows counts.", "G0": "The order must have gone through."}
ONE_VOTE = "sampler = [{ temperature = 0.1 }]\n"
MIN_TRIAL = "[trial]\nmin_tickets = 2\n"
TRIAL_OFF = 'trial = "off"\n'
ENGLISH = find_language("en")
CHINESE = find_language("zh")

Row = dict[str, Any]


def row(group: str, label: str, text: str, **fields: Any) -> Row:
    """A ticket as its line has it."""
    return {"group_id": group, "mission": NAME, "label": label, "text": text} | fields


def shown_word(word: str, count: int, label: str = "fail", start: int = 0) -> list[Row]:
    """Tickets that all show one word, each on a page of its own."""
    return [row(f"{word}{at}", label, f"page {word}{at} shows {word} today") for at in range(start, start + count)]


def small(fails: int = 12, passes: int = 12) -> list[Row]:
    """Orders that a captcha has stopped, and orders that went through."""
    return shown_word("captcha", fails) + shown_word("receipt", passes, "pass")


def mission_in(
    folder: Path,
    tickets: Iterable[Row],
    toml: str = "",
    rules: Mapping[str, str] = RULES,
    clock: ManualClock | None = None,
) -> Mission:
    """A mission's folder, written and read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mission.toml").write_text(f'mission = "{NAME}"\n{toml}', encoding="utf-8")
    (folder / "initial_guidance.json").write_text(json.dumps(rules, ensure_ascii=False), encoding="utf-8")
    lines = (json.dumps(ticket, ensure_ascii=False) + "\n" for ticket in tickets)
    (folder / "tickets.jsonl").write_text("".join(lines), encoding="utf-8")
    return read_mission(folder, clock=clock or ManualClock())


class Ran(NamedTuple):
    """How a run came out."""

    state: RunState
    events: tuple[RunEvent, ...]
    folder: Path
    mission: Mission

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """What happened of one kind."""
        return [event.data for event in self.events if event.type == kind]

    @property
    def rules(self) -> dict[str, str]:
        return self.state.guidance.rules

    @property
    def reasons(self) -> list[str]:
        """Why things were rejected."""
        return [rejection["reason"] for rejection in self.state.rejections]


def learn(mission: Mission, model: Model, *, watcher: Watcher | None = None, resume: Path | None = None) -> Ran:
    """Run a learner to its end, from its first event or from where a folder stands."""
    prepared = prepare_run(mission, model) if resume is None else prepare_resumed_run(mission, model, resume)
    with lock_runs(mission), open_answer_store(mission) as answers:
        log = open_log(prepared)
        try:
            asking = metered_model_for(prepared, model, answers)
            learner = Learner(
                prepared.mission, prepared.reader, prepared.splits, asking, log, prepared.manifest, watcher
            )
            state = asyncio.run(learner.run())
        finally:
            log.close()
    return Ran(state, tuple(log.recorded), prepared.folder, mission)


def substance(events: Iterable[RunEvent]) -> list[tuple[str, bytes]]:
    """Events but for their times."""
    return [event.substance for event in events]


def spent_but_time(events: Sequence[RunEvent]) -> list[dict[str, float]]:
    """What a run had cost by each event, but for seconds."""
    return [{name: value for name, value in event.spent.items() if name != "seconds"} for event in events]


# What models do, from nothing but the text that they are shown.

_RULE = re.compile(
    r'^\[(?P<key>[SG]\d+)\] When it mentions "(?P<word>[^"]+)", the verdict is (?P<verdict>pass|fail)\.$'
)
_CASE = re.compile(
    r'<case key="(?P<key>[^"]+)" label="(?P<label>pass|fail)">\nVerdict: (?P<verdict>pass|fail|-) '
    r"\(pass \d+, fail \d+\)\nReason: [^\n]*\n<evidence>\n(?P<text>.*?)\n</evidence>",
    re.DOTALL,
)


def mentions(word: str, verdict: str = "fail") -> str:
    """A rule that the obedient judge understands."""
    return f'When it mentions "{word}", the verdict is {verdict}.'


def obedient(request: RolloutRequest) -> str:
    """A judge that passes everything but what a rule in its prompt speaks of; the last rule has the last word."""
    verdict, why = "pass", "no rule speaks of it"
    for line in request.prompt.shared.splitlines():
        rule = _RULE.match(line)
        if rule is not None and re.search(rf"\b{re.escape(rule['word'])}\b", request.prompt.own):
            verdict, why = rule["verdict"], f"{rule['key']} speaks of it"
    return f"Verdict: {verdict}\nReason: {why}"


class Seen(NamedTuple):
    """A case, as it stands in a prompt."""

    key: str
    label: str
    verdict: str
    text: str


def cases_in(request: ReflectionRequest) -> list[Seen]:
    """The cases of a reflection prompt."""
    found = [
        Seen(case["key"], case["label"], case["verdict"], case["text"]) for case in _CASE.finditer(request.prompt.own)
    ]
    assert [ticket.key for ticket in found] == [case.ticket_key for case in request.cases], "the prompt shows its cases"
    return found


def answer(
    operations: Sequence[Any] = (), hypotheses: Sequence[Any] = (), *, has_evidence: bool = True, **more: Any
) -> dict[str, Any]:
    """An ops answer."""
    return {
        "has_evidence": has_evidence,
        "evidence_analysis": "looked at",
        "operations": list(operations),
        "hypotheses": list(hypotheses),
    } | more


def add(text: str, evidence: Sequence[str]) -> dict[str, Any]:
    return {"op": "add", "text": text, "rationale": "it separates them", "evidence": list(evidence)}


def guess(text: str, evidence: Sequence[str], **more: Any) -> dict[str, Any]:
    return {"text": text, "falsifier": "one that shows it and has the other label", "evidence": list(evidence)} | more


def says_captcha(request: ReflectionRequest) -> dict[str, Any]:
    """A reflector that takes every case it is shown as evidence of one hypothesis."""
    return answer(hypotheses=[guess(mentions("captcha"), [case.key for case in cases_in(request)])])


def captcha_model(**more: Any) -> ScriptedJudge:
    return ScriptedJudge(obedient, None, says_captcha, **more)


def set_aside(*keys: str) -> dict[str, Any]:
    """A decision answer."""
    return {"no_evidence_group_ids": list(keys), "decision_analysis": "nothing in it"}


# The parts that decide, without a run around them.


def case(
    key: str = "QC-1::fail", text: str = "a page", verdict: Binary = "pass", *, passes: int = 3, fails: int = 0
) -> Case:
    label: Binary = "pass" if key.endswith("::pass") else "fail"
    return Case(key, label, {"text": text}, verdict, "it looked fine", passes, fails)


def guidance_of(**rules: str) -> Guidance:
    return seed_guidance(NAME, RULES | rules, "2026-01-01T00:00:00Z")


def terms_of(
    cases: Sequence[Case],
    guidance: Guidance | None = None,
    *,
    language: Language = ENGLISH,
    max_operations: int = 4,
    changes_left: int = 9,
    **rules: Any,
) -> ReadingTerms:
    return ReadingTerms(
        guidance or guidance_of(), language, Rules(**rules), tuple(cases), max_operations, changes_left, "1.1.1"
    )


def read(said: object, terms: ReadingTerms) -> OpsPass:
    """An ops answer that must be usable."""
    found = read_proposal(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False), terms)
    assert not isinstance(found, UnusableAnswer), found
    return found


def verdict_on(key: str, verdict: Binary | None, passes: int, fails: int, malformed: int = 0) -> Verdict:
    """A judged ticket with the signals of its votes, at the default agreement."""
    group, _, label = key.rpartition("::")
    good = passes + fails
    strength = max(passes, fails) / good if good else 0.0
    both = passes > 0 and fails > 0
    low = strength < 0.67
    match = verdict == label
    signals = Signals(strength, low, both, match, not match, both or low or malformed > 0)
    stated: Binary = "pass" if label == "pass" else "fail"
    return Verdict(key, group, verdict, "why", passes, fails, malformed, None, stated, signals, None, 0)


def with_settings(mission: Mission, **tables: Any) -> Mission:
    return replace(mission, settings=msgspec.structs.replace(mission.settings, **tables))


# A simulation: a world whose rules are known, so that it can be told whether they were found.

_FILLER = (
    *("order", "basket", "button", "colour", "summer", "winter", "garden", "kettle", "window", "invoice", "number"),
    *("street", "letter", "parcel", "morning", "evening", "client", "teapot", "carpet", "mirror", "pencil", "bottle"),
)


class Simulation(NamedTuple):
    """Tickets by hidden rules, some with the wrong label. Nothing in it is real."""

    tickets: list[Row]
    flipped: frozenset[str]
    """The keys of the tickets whose label is wrong."""


def simulation(count: int, hidden: Sequence[str], noise: float, seed: int = 7) -> Simulation:
    """Tickets that fail where they show one of the hidden words, but for a share of wrong labels."""
    dice = random.Random(seed)
    tickets, flipped = [], set()
    for number in range(count):
        words = dice.choices(_FILLER, k=8)
        bad = dice.random() < 0.5
        if bad:
            words[dice.randrange(8)] = dice.choice(hidden)
        label = "fail" if bad else "pass"
        if dice.random() < noise:
            label = "pass" if bad else "fail"
            flipped.add(f"n{number}::{label}")
        tickets.append(row(f"n{number}", label, f"{' '.join(words)} {number}x"))
    return Simulation(tickets, frozenset(flipped))


def decent_decision(request: ReflectionRequest) -> dict[str, Any]:
    """Sets aside a case that shares no unusual word with another of its label."""
    seen = cases_in(request)
    if len(seen) < 4:
        return set_aside()
    return set_aside(*(case.key for case in seen if not _telling(case, seen)))


def decent_proposal(request: ReflectionRequest) -> dict[str, Any]:
    """Proposes from the cases shown: the words that cases of one label share and others don't have."""
    seen = cases_in(request)
    by_word: dict[tuple[str, str], list[str]] = {}
    for case in seen:
        for word in _telling(case, seen):
            by_word.setdefault((word, case.label), []).append(case.key)
    known = request.prompt.shared
    ranked = sorted(by_word.items(), key=lambda item: (-len(item[1]), item[0]))
    return answer(
        hypotheses=[guess(mentions(*what), keys) for what, keys in ranked if mentions(*what) not in known][:6]
    )


def _telling(case: Seen, seen: Sequence[Seen]) -> list[str]:
    """The words of a case that are no filler to somebody who knows shop pages."""
    words = set(re.findall(r"[a-z]+", case.text)) - set(_FILLER) - {"text", "x"}
    return sorted(word for word in words if sum(word in other.text for other in seen if other.label == case.label) > 1)


def careless(word: str) -> Callable[[ReflectionRequest], dict[str, Any]]:
    """A reflector that adds a rule which makes things worse, and takes every case as evidence for it."""

    def propose(request: ReflectionRequest) -> dict[str, Any]:
        keys = [case.key for case in cases_in(request)]
        if mentions(word) in request.prompt.shared:
            return answer(hypotheses=[guess(mentions("nothing at all"), keys)])
        return answer([add(mentions(word), keys)])

    return propose
