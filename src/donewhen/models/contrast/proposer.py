"""The reflector: what separates pass from fail among the studied cases, said as rules with evidence and a falsifier.

An answer depends on the studied cases and on the request, and on nothing else: asked again, it is the same. Requests
with the same rules but other cases start at other places of the same ranking, so that a rule that the trial refuses
does not stand in the way of the next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.models.contrast.candidates import Candidate, Field, Studied, candidates_of, field_of
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import read_all
from donewhen.models.contrast.rules import WEIGHTS, Default, Rule
from donewhen.models.contrast.search import (
    PICKED_CAUTION,
    Find,
    Standing,
    alike,
    pool_of,
    ranked,
    signs,
    stakes_of,
    standing,
    turned,
    worth_of,
)
from donewhen.models.contrast.sentences import LONGEST, write_rule
from donewhen.models.contrast.wording import Said, dimension, falsifier, said, unfit
from donewhen.models.roles import Binary, Case, ReflectionRequest

FIRST = "G0"
_HYPOTHESES = 4
_ROTATED = 12
"""Among so many of the best a request may start."""
_SIGNS = 9
"""A case that shows none of so many signs of its label has no evidence for it."""
_REMEMBERED = 64

Json = dict[str, Any]


class Study(NamedTuple):
    """The cases of an epoch, ready to be compared."""

    places: dict[str, int]
    cases: tuple[Studied, ...]
    field: Field
    candidates: list[Candidate]
    signs: dict[Binary, list[Find]]


class Move(NamedTuple):
    """A change of the rules that would help on the studied cases."""

    op: Json
    find: Find | None
    helped: int
    """The cases that it is good for, as a set."""
    worth: float


class Proposer:
    """Holds what was studied; everything else is worked out when it is asked."""

    def __init__(self, features_of: Callable[[Mapping[str, str]], Features]) -> None:
        self._features_of = features_of
        self._study = self._studied(())
        self._pools: dict[str, list[Find]] = {}
        self._moves: dict[tuple[object, ...], list[Move]] = {}

    def study(self, cases: Sequence[Case]) -> None:
        """Take in the training cases of an epoch. The same cases as before are known already."""
        if list(self._study.places) != [case.ticket_key for case in cases]:
            self._study = self._studied(cases)
            self._pools.clear()
            self._moves.clear()

    def decide(self, request: ReflectionRequest) -> str:
        """The answer of the decision pass."""
        study = self._for(request)
        lacking = [case.ticket_key for case in request.cases if _lacks_signs(case, study)]
        words = said(request.language)
        template = words.decided if lacking else words.all_shown
        analysis = template.format(n=len(lacking), cases=len(request.cases), studied=len(study.cases))
        return _json({"no_evidence_group_ids": lacking, "decision_analysis": analysis})

    def propose(self, request: ReflectionRequest) -> str:
        """The answer of the ops pass."""
        study = self._for(request)
        rules = dict(request.rules)
        operations: list[Json] = []
        covered: set[str] = set()
        turn = _number("\n".join(case.ticket_key for case in request.cases))
        while len(operations) < request.max_operations:
            # Each operation supposes those before it.
            found = self._next(rules, request, study, turn + len(operations))
            if found is None:
                break
            operations.append(found)
            covered.update(found["evidence"])
            _apply(found, rules)
        hypotheses = list(self._hypotheses(rules, request, study, covered))
        asked = [case.ticket_key for case in request.cases]
        words = said(request.language)
        count = len(operations) + len(hypotheses)
        analysis = (words.proposed if count else words.nothing).format(n=len(study.cases), count=count)
        return _json(
            {
                "has_evidence": bool(count),
                "evidence_analysis": analysis,
                "operations": operations,
                "hypotheses": hypotheses,
                "coverage": {
                    "learnable_ticket_keys": asked,
                    "covered_ticket_keys": [key for key in asked if key in covered],
                    "uncovered_ticket_keys": [key for key in asked if key not in covered],
                },
            }
        )

    def _next(self, rules: dict[str, str], request: ReflectionRequest, study: Study, turn: int) -> Json | None:
        """One operation: a repair and an addition in turn, as far as there are any."""
        additions: list[Json] = []
        repairs: list[Json] = []
        for move in self._ranked(rules, request.language, study):
            evidence = _keys(move.helped, request, study)
            if not evidence:
                continue
            if move.op["op"] == "add":
                additions.append({**move.op, "evidence": evidence})
            elif move.op["key"] in request.rules:  # a rule that this very answer adds has no key yet
                repairs.append({**move.op, "evidence": evidence})
        chosen = repairs if repairs and (turn % 2 or not additions) else additions
        if not chosen:
            return None
        # The best while nothing is learned, and what does harm; then one of the best.
        learned = bool(read_all(tuple(rules.items())).guidance)
        rotates = learned and chosen[0]["op"] != "delete"
        return chosen[turn // 2 % min(len(chosen), _ROTATED) if rotates else 0]

    def _hypotheses(
        self, rules: dict[str, str], request: ReflectionRequest, study: Study, covered: set[str]
    ) -> Iterator[Json]:
        """Rules for the cases that the operations leave out. Adds to what is covered."""
        taken: list[int] = []
        for move in self._ranked(rules, request.language, study):
            if move.find is None or len(taken) == _HYPOTHESES:
                continue
            evidence = _keys(move.helped, request, study)
            if covered.issuperset(evidence) or any(alike(move.find.mask, other) for other in taken):
                continue
            taken.append(move.find.mask)
            covered.update(evidence)
            yield {
                "text": move.op["text"],
                "dimension": dimension(move.find.rule),
                "falsifier": falsifier(move.find.rule, request.language),
                "evidence": evidence,
            }

    def _ranked(self, rules: Mapping[str, str], language: str, study: Study) -> list[Move]:
        if study is not self._study:
            pool = pool_of(study.candidates, study.field, language)
            return moves_of(rules, pool, study, language)
        key = (tuple(rules.items()), language)
        if key not in self._moves:
            if language not in self._pools:
                self._pools[language] = pool_of(study.candidates, study.field, language)
            if len(self._moves) == _REMEMBERED:
                self._moves.pop(next(iter(self._moves)))
            self._moves[key] = moves_of(rules, self._pools[language], study, language)
        return self._moves[key]

    def _for(self, request: ReflectionRequest) -> Study:
        """What was studied; the request's own cases where it has others."""
        known = self._study.places
        return self._study if all(one.ticket_key in known for one in request.cases) else self._studied(request.cases)

    def _studied(self, cases: Sequence[Case]) -> Study:
        studied = tuple(
            Studied(self._features_of(case.evidence), case.label, case.cluster or case.ticket_key) for case in cases
        )
        field = field_of(studied)
        candidates = candidates_of(studied, field, unfit) if cases else []
        both: tuple[Binary, Binary] = ("pass", "fail")
        found = {verdict: signs(candidates, field, verdict, field.everyone)[:_SIGNS] for verdict in both}
        return Study({case.ticket_key: at for at, case in enumerate(cases)}, studied, field, candidates, found)


def moves_of(rules: Mapping[str, str], pool: Sequence[Find], study: Study, language: str) -> list[Move]:
    """Every change that would help, the best first: rules to add, to put in place of others, to take away."""
    now = standing(rules, study.cases)
    words = said(language)
    moves = [
        *_additions(rules, now, pool, study, language, words),
        *_replacements(rules, now, pool, study, language, words),
        *_removals(rules, now, study, words),
        *_defaults(rules, now, study, language, words),
    ]
    # What does harm goes first.
    return sorted(moves, key=lambda one: (one.op["op"] != "delete", -one.worth))


def _additions(
    rules: Mapping[str, str], now: Standing, pool: Sequence[Find], study: Study, language: str, words: Said
) -> Iterator[Move]:
    for find in ranked(now, pool, study.field, language):
        text = write_rule(find.rule, language)
        if text not in rules.values():
            right, wrong = _turns(find.mask, find.rule, now, study.field)
            rationale = words.add.format(n=len(study.cases), right=right.bit_count(), wrong=wrong.bit_count())
            yield Move({"op": "add", "text": text, "rationale": rationale}, find, _spoken_for(find, study), find.worth)


def _replacements(
    rules: Mapping[str, str], now: Standing, pool: Sequence[Find], study: Study, language: str, words: Said
) -> Iterator[Move]:
    """Better rules than those that are there, of the same verdict."""
    for key, old, _ in read_all(tuple(rules.items())).guidance:
        if key == FIRST:
            continue
        before = standing(rules, study.cases, without=key)
        for stakes in stakes_of(before, study.field, study.field.everyone):
            if (stakes.verdict, stakes.strength) != (old.verdict, old.strength):
                continue
            base = worth_of(now.masks[key], stakes, PICKED_CAUTION)
            for find in pool:
                more = worth_of(find.mask, stakes, PICKED_CAUTION) - base if find.rule.verdict == old.verdict else 0
                if more < 1:
                    continue
                changed = find.mask ^ now.masks[key]
                better = changed & (find.mask & stakes.right | ~find.mask & stakes.wrong)
                worse = changed & (find.mask & stakes.wrong | ~find.mask & stakes.right)
                rule = Rule(find.rule.conditions, old.verdict, old.strength, find.rule.enough)
                text = write_rule(rule, language)
                if better.bit_count() > worse.bit_count() + 1 and text not in rules.values() and len(text) <= LONGEST:
                    rationale = words.update.format(
                        n=len(study.cases), right=better.bit_count(), wrong=worse.bit_count()
                    )
                    op = {"op": "update", "key": key, "text": text, "rationale": rationale}
                    yield Move(op, None, _spoken_for(Find(rule, find.mask, 0), study), more)


def _removals(rules: Mapping[str, str], now: Standing, study: Study, words: Said) -> Iterator[Move]:
    """Rules without which more is right."""
    for key, old, _ in read_all(tuple(rules.items())).guidance:
        right, wrong = _turns(now.masks[key], old, standing(rules, study.cases, without=key), study.field)
        if key != FIRST and wrong.bit_count() > right.bit_count():
            rationale = words.delete.format(n=len(study.cases), right=wrong.bit_count(), wrong=right.bit_count())
            worth = float(wrong.bit_count() - right.bit_count())
            yield Move({"op": "delete", "key": key, "rationale": rationale}, None, wrong, worth)


def _defaults(rules: Mapping[str, str], now: Standing, study: Study, language: str, words: Said) -> Iterator[Move]:
    """The other default, where rules are learned and the cases that none speaks of mostly have the other label."""
    if not now.masks or FIRST not in rules:
        return
    other: Binary = "fail" if now.default == "pass" else "pass"
    silent = now.levels.get(0, 0)
    right = silent & (study.field.failing if other == "fail" else study.field.passing)
    more = 2 * right.bit_count() - silent.bit_count()
    if more > 1:
        rationale = words.default.format(n=silent.bit_count(), right=right.bit_count())
        op = {"op": "update", "key": FIRST, "text": write_rule(Default(other), language), "rationale": rationale}
        yield Move(op, None, right, float(more))


def _turns(mask: int, rule: Rule, before: Standing, field: Field) -> tuple[int, int]:
    """The cases that a rule turns to the right and to the wrong verdict, given the others."""
    moved = mask & turned(before, rule.verdict, WEIGHTS[rule.strength])
    wanted = field.failing if rule.verdict == "fail" else field.passing
    return moved & wanted, moved & ~wanted


def _spoken_for(find: Find, study: Study) -> int:
    """The cases that a rule applies to and judges as they are labelled."""
    return find.mask & (study.field.failing if find.rule.verdict == "fail" else study.field.passing)


def _lacks_signs(case: Case, study: Study) -> bool:
    found = study.signs[case.label]
    bit = 1 << study.places[case.ticket_key]
    return len(found) == _SIGNS and not any(find.mask & bit for find in found)


def _keys(mask: int, request: ReflectionRequest, study: Study) -> list[str]:
    return [case.ticket_key for case in request.cases if mask >> study.places[case.ticket_key] & 1]


def _apply(op: Json, rules: dict[str, str]) -> None:
    if op["op"] == "delete":
        del rules[op["key"]]
    elif op["op"] == "update":
        rules[op["key"]] = op["text"]
    else:
        rules[f"G{1 + max((int(key[1:]) for key in rules if key.startswith('G')), default=0)}"] = op["text"]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _json(data: Json) -> str:
    return json.dumps(data, ensure_ascii=False)
