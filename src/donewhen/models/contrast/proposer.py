"""The reflector: what separates pass from fail among the studied cases, said as rules with evidence and a falsifier.

An answer depends on the studied cases and on the request, and on nothing else: asked again, it is the same. Different
requests look at different shares of the clusters, so that a rule is proposed again and again only when it does not hang
on a few of them.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from donewhen.models.contrast.candidates import Candidate, Field, Studied, candidates_of, clusters_in, field_of
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.rules import Default, Rule, signed_weight
from donewhen.models.contrast.search import Find, Standing, alike, finds, stakes_of, standing, worth_of
from donewhen.models.contrast.sentences import write_rule
from donewhen.models.contrast.judge import read_all
from donewhen.models.contrast.wording import dimension, falsifier, said, unfit
from donewhen.models.roles import Case, ReflectionRequest

VIEWS = 6
"""In how many ways clusters are left out; one of them leaves out none."""
_LEFT_OUT = 4
"""A view leaves out one cluster in so many."""
_HYPOTHESES = 4
_SUPPORT = 3
"""A rule must help cases of so many clusters."""
_SIGNS = 15


class Study(NamedTuple):
    """The cases of an epoch, ready to be compared."""

    places: dict[str, int]
    cases: tuple[Studied, ...]
    field: Field
    candidates: list[Candidate]


class Proposer:
    """Holds what was studied; everything else is worked out when it is asked."""

    def __init__(self, features_of: Any) -> None:
        self._features_of = features_of
        self._study: Study | None = None
        self._found: OrderedDict[tuple[object, ...], list[Find]] = OrderedDict()

    def study(self, cases: Sequence[Case]) -> None:
        """Take in the training cases of an epoch. The same cases as before are known already."""
        keys = [case.ticket_key for case in cases]
        if self._study is None or list(self._study.places) != keys:
            self._study = self._studied(cases)
            self._found.clear()

    def decide(self, request: ReflectionRequest) -> str:
        """The answer of the decision pass."""
        study = self._for(request)
        lacking = [case.ticket_key for case in request.cases if self._lacks_signs(case, study)]
        words = said(request.language)
        template = words.decided if lacking else words.evidence_everywhere
        analysis = template.format(n=len(lacking), cases=len(request.cases), studied=len(study.cases))
        return _json({"no_evidence_group_ids": lacking, "decision_analysis": analysis})

    def propose(self, request: ReflectionRequest) -> str:
        """The answer of the ops pass."""
        study = self._for(request)
        now = standing(request.rules, study.cases)
        found = self._finds(request, study, now)
        words = said(request.language)
        operations: list[dict[str, Any]] = []
        hypotheses: list[dict[str, Any]] = []
        taken: list[Find] = []
        covered: set[str] = set()
        for find in found:
            text = write_rule(find.rule, request.language)
            evidence = _evidence(find, request, study)
            if not evidence or text in request.rules.values() or any(alike(find.mask, one.mask) for one in taken):
                continue
            if len(operations) < request.max_operations:
                right, wrong = _turns(find, now, study)
                rationale = words.add.format(n=len(study.cases), right=right, wrong=wrong)
                operations.append({"op": "add", "text": text, "rationale": rationale, "evidence": evidence})
            elif len(hypotheses) < _HYPOTHESES and not covered.issuperset(evidence):
                hypotheses.append(
                    {
                        "text": text,
                        "dimension": dimension(find.rule),
                        "falsifier": falsifier(find.rule, request.language),
                        "evidence": evidence,
                    }
                )
            else:
                continue
            taken.append(find)
            covered.update(evidence)
        asked = [case.ticket_key for case in request.cases]
        analysis = (words.proposed if found else words.nothing).format(n=len(study.cases), finds=len(found))
        return _json(
            {
                "has_evidence": bool(operations or hypotheses),
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

    def _for(self, request: ReflectionRequest) -> Study:
        """What was studied; the request's own cases where it holds others."""
        if self._study is None or any(case.ticket_key not in self._study.places for case in request.cases):
            return self._studied(request.cases)
        return self._study

    def _studied(self, cases: Sequence[Case]) -> Study:
        studied = tuple(
            Studied(self._features_of(case.evidence), case.label, case.cluster or case.ticket_key) for case in cases
        )
        field = field_of(studied)
        places = {case.ticket_key: index for index, case in enumerate(cases)}
        return Study(places, studied, field, candidates_of(studied, field, unfit))

    def _finds(self, request: ReflectionRequest, study: Study, now: Standing) -> list[Find]:
        view = _view(request)
        key = (tuple(request.rules.items()), view, request.language, id(study))
        if key not in self._found:
            sample = study.field.everyone
            for number, cluster in enumerate(study.field.clusters):
                if view and _hash(f"{view} {number}") % _LEFT_OUT == 0:
                    sample &= ~cluster
            self._found[key] = finds(now, study.candidates, study.field, sample, request.language)
            if len(self._found) > 64:
                self._found.popitem(last=False)
        return self._found[key]

    def _lacks_signs(self, case: Case, study: Study) -> bool:
        return False


def _evidence(find: Find, request: ReflectionRequest, study: Study) -> list[str]:
    """The request's cases that a rule applies to and judges as they are labelled."""
    return [
        case.ticket_key
        for case in request.cases
        if case.label == find.rule.verdict and find.mask >> study.places[case.ticket_key] & 1
    ]


def _turns(find: Find, now: Standing, study: Study) -> tuple[int, int]:
    for stakes in stakes_of(now, study.field, study.field.everyone):
        if (stakes.verdict, stakes.strength) == (find.rule.verdict, find.rule.strength):
            return (find.mask & stakes.right).bit_count(), (find.mask & stakes.wrong).bit_count()
    return 0, 0


def _view(request: ReflectionRequest) -> int:
    return _hash("\n".join(case.ticket_key for case in request.cases)) % VIEWS


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)
