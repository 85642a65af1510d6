"""The reflector: what separates pass from fail among the studied cases, said as rules with evidence and a falsifier.

An answer depends on the studied cases and on the request, and on nothing else: asked again, it is the same. Requests
with the same rules but other cases start at other places of the same ranking, so that a rule that the trial refuses
does not stand in the way of the next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from donewhen.models.contrast.candidates import StudiedCase, candidates_of, case_sets
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import read_rules
from donewhen.models.contrast.rule_changes import Json, RuleMove, Study, helpful_additions, helpful_moves
from donewhen.models.contrast.search import FoundRule, best_signs, nearly_same, rule_pool
from donewhen.models.contrast.wording import falsifier_sentence, is_unfit_phrase, rule_dimension, rule_sentences
from donewhen.models.roles import Binary, Case, ReflectionRequest

_HYPOTHESES = 4
_ROTATED = 12
"""Among so many of the best a request may start."""
_SIGNS = 9
"""A case that shows none of so many signs of its label has no evidence for it."""
_REMEMBERED = 64


class Proposer:
    """Holds what was studied; everything else is worked out when it is asked.

    ``open_to_others``: somebody else judges what the rules leave open. Then it is their verdicts that a rule would
    turn, and not a default. Only additions are proposed, since what would be without a rule is not known.
    """

    def __init__(self, features_of: Callable[[Mapping[str, str]], Features], *, open_to_others: bool = False) -> None:
        self._features_of = features_of
        self._others = open_to_others
        self._known: Sequence[object] = ()
        self._study = self._studied(())
        self._pools: dict[str, list[FoundRule]] = {}
        self._moves: dict[tuple[object, ...], list[RuleMove]] = {}

    def study(self, cases: Sequence[Case]) -> None:
        """Take in the training cases of an epoch, in whatever order. The same as before are known already."""
        cases = sorted(cases, key=lambda case: case.ticket_key)
        known = [
            (case.ticket_key, case.evidence, case.cluster, case.verdict if self._others else None) for case in cases
        ]
        if known != self._known:
            self._known = known
            self._study = self._studied(cases)
            self._pools.clear()
            self._moves.clear()

    def decide(self, request: ReflectionRequest) -> str:
        """The answer of the decision pass."""
        study = self._for(request)
        lacking = [case.ticket_key for case in request.cases if _lacks_signs(case, study)]
        words = rule_sentences(request.language)
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
        words = rule_sentences(request.language)
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
        learned = bool(read_rules(tuple(rules.items())).guidance)
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
            if covered.issuperset(evidence) or any(nearly_same(move.find.mask, other) for other in taken):
                continue
            taken.append(move.find.mask)
            covered.update(evidence)
            yield {
                "text": move.op["text"],
                "dimension": rule_dimension(move.find.rule),
                "falsifier": falsifier_sentence(move.find.rule, request.language),
                "evidence": evidence,
            }

    def _ranked(self, rules: Mapping[str, str], language: str, study: Study) -> list[RuleMove]:
        moves = helpful_additions if self._others else helpful_moves
        if study is not self._study:
            return moves(rules, rule_pool(study.candidates, study.field, language), study, language)
        key = (tuple(rules.items()), language)
        if key not in self._moves:
            if language not in self._pools:
                self._pools[language] = rule_pool(study.candidates, study.field, language)
            if len(self._moves) == _REMEMBERED:
                self._moves.pop(next(iter(self._moves)))
            self._moves[key] = moves(rules, self._pools[language], study, language)
        return self._moves[key]

    def _for(self, request: ReflectionRequest) -> Study:
        """What was studied; the request's own cases where it has others."""
        known = self._study.places
        return self._study if all(case.ticket_key in known for case in request.cases) else self._studied(request.cases)

    def _studied(self, cases: Sequence[Case]) -> Study:
        studied = tuple(
            StudiedCase(self._features_of(case.evidence), case.label, case.cluster or case.ticket_key) for case in cases
        )
        field = case_sets(studied)
        candidates = candidates_of(studied, field, is_unfit_phrase) if cases else []
        both: tuple[Binary, Binary] = ("pass", "fail")
        found = {verdict: best_signs(candidates, field, verdict, field.everyone)[:_SIGNS] for verdict in both}
        passed = sum(1 << at for at, case in enumerate(cases) if case.verdict == "pass")
        return Study({case.ticket_key: at for at, case in enumerate(cases)}, studied, field, candidates, found, passed)


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
