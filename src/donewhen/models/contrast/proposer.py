"""The reflector: proposes rules that separate pass from fail among the studied cases.

Deterministic: an answer depends only on the studied cases and the request. Requests with the same rules but other cases
start at other positions of the same ranking, so that a rule that the trial rejects does not block the next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.candidates import StudiedCase, candidates_of, case_sets
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import read_rules
from donewhen.models.contrast.rule_changes import Json, RuleMove, Study, helpful_additions, helpful_moves
from donewhen.models.contrast.scorecard import Scorer
from donewhen.models.contrast.signs import best_signs, nearly_same
from donewhen.models.contrast.wording import falsifier_sentence, is_unfit_phrase, rule_dimension, rule_sentences
from donewhen.models.roles import Case, ReflectionRequest

_HYPOTHESES = 4
_ROTATED = 6
"""Every other request starts at one of this many best moves, so that a rejected one does not block the next."""
_SIGNS = 9
"""A case with none of this many signs of its label has no evidence for it."""
_REMEMBERED = 64


class Proposer:
    """Holds the studied cases; everything else is computed on request.

    ``open_to_others``: another model judges what the rules leave open, so a rule would change its verdicts instead of
    a default. Only additions are proposed, since the verdicts without an existing rule are not known.
    """

    def __init__(self, features_of: Callable[[Mapping[str, str]], Features], *, open_to_others: bool = False) -> None:
        self._features_of = features_of
        self._others = open_to_others
        self._known: Sequence[object] = ()
        self._study = self._make_study(())
        self._moves: dict[tuple[object, ...], list[RuleMove]] = {}

    def study(self, cases: Sequence[Case]) -> None:
        """Set the training cases of an epoch, in any order. Does nothing if they are unchanged."""
        cases = sorted(cases, key=lambda case: case.ticket_key)
        known = [
            (case.ticket_key, case.evidence, case.cluster, case.verdict if self._others else None) for case in cases
        ]
        if known != self._known:
            self._known = known
            self._study = self._make_study(cases)
            self._moves.clear()

    def decide(self, request: ReflectionRequest) -> str:
        """Return the answer of the decision pass."""
        study = self._study_for(request)
        lacking = [case.ticket_key for case in request.cases if _lacks_signs(case, study)]
        words = rule_sentences(request.language)
        template = words.decided if lacking else words.all_shown
        analysis = template.format(n=len(lacking), cases=len(request.cases), studied=len(study.cases))
        return _json({"no_evidence_group_ids": lacking, "decision_analysis": analysis})

    def propose(self, request: ReflectionRequest) -> str:
        """Return the answer of the ops pass."""
        study = self._study_for(request)
        rules = dict(request.rules)
        operations: list[Json] = []
        covered: set[str] = set()
        turn = _hash_number("\n".join(case.ticket_key for case in request.cases))
        while len(operations) < request.max_operations:
            # Each operation builds on those before it.
            operation = self._next_operation(rules, request, study, turn + len(operations))
            if operation is None:
                break
            operations.append(operation)
            covered.update(operation["evidence"])
            _apply(operation, rules)
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

    def _next_operation(
        self, rules: dict[str, str], request: ReflectionRequest, study: Study, turn: int
    ) -> Json | None:
        """Return the next operation, alternating between repairs and additions, or None."""
        additions: list[Json] = []
        repairs: list[Json] = []
        for move in self._ranked(rules, request.language, study):
            evidence = _ticket_keys(move.helped, request, study)
            if not evidence:
                continue
            if move.op["op"] == "add":
                additions.append({**move.op, "evidence": evidence})
            elif move.op["key"] in request.rules:  # a rule that this very answer adds has no key yet
                repairs.append({**move.op, "evidence": evidence})
        chosen = repairs if repairs and (turn % 2 or not additions) else additions
        if not chosen:
            return None
        # Take the best move while nothing is learned, and for deletions; afterwards rotate among the best.
        learned = bool(read_rules(tuple(rules.items())).guidance)
        rotates = learned and chosen[0]["op"] != "delete" and turn // 2 % 2
        return chosen[turn // 4 % min(len(chosen), _ROTATED) if rotates else 0]

    def _hypotheses(
        self, rules: dict[str, str], request: ReflectionRequest, study: Study, covered: set[str]
    ) -> Iterator[Json]:
        """Yield hypotheses for cases that the operations don't cover, and add those cases to ``covered``."""
        taken: list[int] = []
        for move in self._ranked(rules, request.language, study):
            if move.rule is None or len(taken) == _HYPOTHESES:
                continue
            evidence = _ticket_keys(move.helped, request, study)
            if covered.issuperset(evidence) or any(nearly_same(move.mask, other) for other in taken):
                continue
            taken.append(move.mask)
            covered.update(evidence)
            yield {
                "text": move.op["text"],
                "dimension": rule_dimension(move.rule),
                "falsifier": falsifier_sentence(move.rule, request.language),
                "evidence": evidence,
            }

    def _ranked(self, rules: Mapping[str, str], language: str, study: Study) -> list[RuleMove]:
        moves = helpful_additions if self._others else helpful_moves
        if study is not self._study:
            return moves(rules, study, language)
        key = (tuple(rules.items()), language)
        if key not in self._moves:
            if len(self._moves) == _REMEMBERED:
                self._moves.pop(next(iter(self._moves)))
            self._moves[key] = moves(rules, study, language)
        return self._moves[key]

    def _study_for(self, request: ReflectionRequest) -> Study:
        """Return the current study, or a study of the request's cases if they are not part of it."""
        known = self._study.places
        return (
            self._study if all(case.ticket_key in known for case in request.cases) else self._make_study(request.cases)
        )

    def _make_study(self, cases: Sequence[Case]) -> Study:
        studied = tuple(
            StudiedCase(self._features_of(case.evidence), case.label, case.cluster or case.ticket_key) for case in cases
        )
        field = case_sets(studied)
        candidates = candidates_of(studied, field, is_unfit_phrase) if cases else []
        both: tuple[Binary, Binary] = ("pass", "fail")
        signs = {verdict: best_signs(candidates, field, verdict)[:_SIGNS] for verdict in both}
        passed = sum(1 << index for index, case in enumerate(cases) if case.verdict == "pass")
        return Study(
            {case.ticket_key: index for index, case in enumerate(cases)},
            studied,
            field,
            candidates,
            signs,
            Scorer(studied, field),
            passed,
        )


def _lacks_signs(case: Case, study: Study) -> bool:
    signs = study.signs[case.label]
    bit = 1 << study.places[case.ticket_key]
    return len(signs) == _SIGNS and not any(find.mask & bit for find in signs)


def _ticket_keys(mask: int, request: ReflectionRequest, study: Study) -> list[str]:
    return [case.ticket_key for case in request.cases if mask >> study.places[case.ticket_key] & 1]


def _apply(op: Json, rules: dict[str, str]) -> None:
    if op["op"] == "delete":
        del rules[op["key"]]
    elif op["op"] == "update":
        rules[op["key"]] = op["text"]
    else:
        rules[f"G{1 + max((int(key[1:]) for key in rules if key.startswith('G')), default=0)}"] = op["text"]


def _hash_number(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _json(data: Json) -> str:
    return json.dumps(data, ensure_ascii=False)
