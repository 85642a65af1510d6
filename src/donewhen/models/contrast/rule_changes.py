"""Finds changes of the rules (add, replace, delete) that would help on the studied cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.candidates import Candidate, CaseSets, StudiedCase
from donewhen.models.contrast.rules import WEIGHTS, DefaultRule, Rule
from donewhen.models.contrast.search import (
    PICKED_CAUTION,
    FoundRule,
    RuleState,
    cases_turned,
    rank_rules,
    stakes_of,
    state_as_judged,
    state_under_rules,
    worth_of,
)
from donewhen.models.contrast.sentences import LONGEST, read_rule, sentences_of, write_rule
from donewhen.models.contrast.wording import RuleSentences, rule_sentences

FIRST = "G0"
_LEAST = 1
"""Minimum gain for replacing a rule."""

Json = dict[str, Any]


class Study(NamedTuple):
    """The cases of an epoch, prepared for comparison."""

    places: dict[str, int]
    cases: tuple[StudiedCase, ...]
    field: CaseSets
    candidates: list[Candidate]
    signs: dict[Binary, list[FoundRule]]
    passed: int = 0
    """The cases with the verdict pass, as a set."""


class RuleMove(NamedTuple):
    """A change of the rules that would help on the studied cases."""

    op: Json
    """The operation, without its evidence."""
    find: FoundRule | None
    """The new rule, if it is an addition."""
    helped: int
    """The cases that it helps, as a set."""
    worth: float


def helpful_moves(rules: Mapping[str, str], pool: Sequence[FoundRule], study: Study, language: str) -> list[RuleMove]:
    """Return every change that would help, best first."""
    now = state_under_rules(rules, study.cases)
    words = rule_sentences(language)
    moves = [
        *_additions(rules, now, pool, study, language, words),
        *_replacements(rules, now, pool, study, language, words),
        *_removals(rules, now, study, words),
        *_defaults(rules, now, study, language, words),
    ]
    # Deletions of harmful rules first.
    return sorted(moves, key=lambda move: (move.op["op"] != "delete", -move.worth))


def helpful_additions(
    rules: Mapping[str, str], pool: Sequence[FoundRule], study: Study, language: str
) -> list[RuleMove]:
    """Return the helpful additions if another model judges what the rules leave open, best first."""
    now = state_as_judged(rules, study.cases, study.passed)
    return list(_additions(rules, now, pool, study, language, rule_sentences(language)))


def _additions(
    rules: Mapping[str, str],
    now: RuleState,
    pool: Sequence[FoundRule],
    study: Study,
    language: str,
    words: RuleSentences,
) -> Iterator[RuleMove]:
    for find in rank_rules(now, pool, study.field, language):
        text = write_rule(find.rule, language)
        if text not in rules.values():
            right, wrong = _turns(find.mask, find.rule, now, study.field)
            op = {"op": "add", "text": text, "rationale": _rationale(words.add, study, right, wrong)}
            yield RuleMove(op, find, _correct_cases(find.mask, find.rule, study), find.worth)


def _replacements(
    rules: Mapping[str, str],
    now: RuleState,
    pool: Sequence[FoundRule],
    study: Study,
    language: str,
    words: RuleSentences,
) -> Iterator[RuleMove]:
    """Yield better rules for existing ones, with the same verdict and strength."""
    for key, old in _learned(rules):
        held = now.masks[key]
        before = state_under_rules(rules, study.cases, without=key)
        for stakes in stakes_of(before, study.field, study.field.everyone):
            if (stakes.verdict, stakes.strength) != (old.verdict, old.strength):
                continue
            base = worth_of(held, stakes, PICKED_CAUTION)
            for find in pool:
                more = worth_of(find.mask, stakes, PICKED_CAUTION) - base if find.rule.verdict == old.verdict else 0
                if more < _LEAST:
                    continue
                gained, lost = find.mask & ~held, held & ~find.mask
                better = gained & stakes.right | lost & stakes.wrong
                worse = gained & stakes.wrong | lost & stakes.right
                rule = Rule(find.rule.conditions, old.verdict, old.strength, find.rule.enough)
                text = write_rule(rule, language)
                if better.bit_count() > worse.bit_count() + 1 and text not in rules.values() and len(text) <= LONGEST:
                    rationale = _rationale(words.update, study, better, worse)
                    op = {"op": "update", "key": key, "text": text, "rationale": rationale}
                    yield RuleMove(op, None, _correct_cases(find.mask, rule, study), more)


def _removals(rules: Mapping[str, str], now: RuleState, study: Study, words: RuleSentences) -> Iterator[RuleMove]:
    """Yield deletions of rules that do more harm than good."""
    for key, old in _learned(rules):
        right, wrong = _turns(now.masks[key], old, state_under_rules(rules, study.cases, without=key), study.field)
        more = wrong.bit_count() - right.bit_count()
        if more > 0:
            op = {"op": "delete", "key": key, "rationale": _rationale(words.delete, study, wrong, right)}
            yield RuleMove(op, None, wrong, float(more))


def _defaults(
    rules: Mapping[str, str], now: RuleState, study: Study, language: str, words: RuleSentences
) -> Iterator[RuleMove]:
    """Yield the other default if rules are learned and most undecided cases have the other label."""
    other: Binary = "fail" if now.default == "pass" else "pass"
    silent = now.levels.get(0, 0)
    right = silent & (study.field.failing if other == "fail" else study.field.passing)
    more = 2 * right.bit_count() - silent.bit_count()
    if more > 1 and now.masks and FIRST in rules:
        # Keep the other sentences of the first rule.
        kept = [sentence for sentence in sentences_of(rules[FIRST]) if not isinstance(read_rule(sentence), DefaultRule)]
        text = " ".join((*kept, write_rule(DefaultRule(other), language)))
        if len(text) <= LONGEST:
            rationale = words.default.format(n=silent.bit_count(), right=right.bit_count())
            op = {"op": "update", "key": FIRST, "text": text, "rationale": rationale}
            yield RuleMove(op, None, right, float(more))


def _learned(rules: Mapping[str, str]) -> Iterator[tuple[str, Rule]]:
    """Yield the rules that may be changed: guidance rules of one parseable sentence."""
    for key, text in rules.items():
        rule = read_rule(text) if key.startswith("G") and key != FIRST else None
        if isinstance(rule, Rule):
            yield key, rule


def _turns(mask: int, rule: Rule, before: RuleState, field: CaseSets) -> tuple[int, int]:
    """Return the cases that a rule turns to the right and to the wrong verdict, given the other rules."""
    moved = mask & cases_turned(before, rule.verdict, WEIGHTS[rule.strength])
    wanted = field.failing if rule.verdict == "fail" else field.passing
    return moved & wanted, moved & ~wanted


def _correct_cases(mask: int, rule: Rule, study: Study) -> int:
    """Return the cases that a rule applies to and judges as labelled."""
    return mask & (study.field.failing if rule.verdict == "fail" else study.field.passing)


def _rationale(template: str, study: Study, right: int, wrong: int) -> str:
    return template.format(n=len(study.cases), right=right.bit_count(), wrong=wrong.bit_count())
