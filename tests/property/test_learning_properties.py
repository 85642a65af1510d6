"""Learning: what holds for every answer of a reflector, every text of a rule and every set of tickets."""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, get_args

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "learning"))

from learning_kit import (
    CHINESE,
    ENGLISH,
    RULES,
    Ran,
    captcha_model,
    case,
    guidance_of,
    learn,
    mentions,
    mission_in,
    obedient,
    small,
    substance,
    terms_of,
)

from donewhen.foundation.canonical import canonical_json
from donewhen.judging.guidance import apply_change
from donewhen.judging.mission_settings import Split
from donewhen.learning.after.replay import replay_run
from donewhen.learning.measuring.splits import PARTS, SplitMember, split_tickets
from donewhen.learning.reflection.closure import close_batch, mix_labels, retry_batch_size, split_batches
from donewhen.learning.reflection.hypotheses import add_support, promotable_hypotheses, rule_signature
from donewhen.learning.reflection.proposals import HypothesisProposal, OpsPass, read_decision, read_proposal
from donewhen.learning.reflection.rejections import MEANINGS, AnswerReason, ItemReason
from donewhen.learning.reflection.strict_json import UnusableAnswer, read_json_object
from donewhen.learning.reflection.wording import contains, normalise_rule, polarity, wording_objection
from donewhen.learning.running.artifacts import write_artifacts
from donewhen.models.roles import Completion, ModelError, ReflectionRequest
from donewhen.testing.models import ScriptedJudge
from donewhen_kit import examples

MODEST = settings(max_examples=examples(80), deadline=None)
FEW = settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])

# What a reflector might say: real keys and unreal ones, good texts and bad ones, right shapes and wrong ones.

TICKETS = small(8, 4)
KEYS = [f"{one['group_id']}::{one['label']}" for one in TICKETS]
ANY_KEY = st.sampled_from([*KEYS, *KEYS, "captcha0", "captcha0::pass", "QC-9::fail", ""])
RULE_KEY = st.sampled_from(["G0", "G1", "G2", "G3", "S1", "S2", "s1", "G01", "", "G99"])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | ANY_KEY,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
TEXTS = st.sampled_from(
    [
        *(mentions("captcha"), mentions("page"), mentions("today", "pass"), mentions("receipt", "pass")),
        *(
            "Only what the page shows counts.",
            "It is pending: fail.",
            "captcha1 is a fail.",
            "No verdict.",
            "",
            "\ud800 fail",
        ),
        *("It must not pass.", "x" * 300, "pen\u200bding: fail", "Fail where more than 3 are open.", "fail " * 3),
    ]
) | st.text(max_size=30)
EVIDENCE = st.lists(ANY_KEY, max_size=5) | JUNK
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "update", "delete", "merge", "burn"])},
    optional={
        "key": RULE_KEY | JUNK,
        "text": TEXTS | JUNK,
        "merged_from": st.lists(RULE_KEY, max_size=3) | JUNK,
        "rationale": st.text(max_size=5) | JUNK,
        "evidence": EVIDENCE,
        "extra": JUNK,
    },
)
GOOD_ADD = st.fixed_dictionaries(
    {
        "op": st.just("add"),
        "text": TEXTS,
        "rationale": st.just(""),
        "evidence": st.lists(st.sampled_from(KEYS), min_size=1),
    }
)
HYPOTHESES = st.fixed_dictionaries(
    {"text": TEXTS, "falsifier": st.sampled_from(["a receipt", "", None]), "evidence": EVIDENCE},
    optional={"dimension": st.sampled_from(["look", "brand", 3])},
)
GOOD_GUESS = st.fixed_dictionaries(
    {"text": TEXTS, "falsifier": st.just("a receipt"), "evidence": st.lists(st.sampled_from(KEYS), min_size=1)}
)
PROPOSALS = st.fixed_dictionaries(
    {
        "has_evidence": st.just(True) | st.just(True) | st.booleans() | JUNK,
        "evidence_analysis": st.text(max_size=5),
        "operations": st.lists(OPERATIONS | GOOD_ADD | JUNK, max_size=4),
    },
    optional={"hypotheses": st.lists(HYPOTHESES | GOOD_GUESS | JUNK, max_size=4), "coverage": JUNK, "extra": JUNK},
)
DECISIONS = st.fixed_dictionaries(
    {"no_evidence_group_ids": st.lists(ANY_KEY, max_size=3) | JUNK, "decision_analysis": st.text(max_size=5)},
    optional={"extra": JUNK},
)


def written(value: Any) -> str:
    return json.dumps(value)


def broken(text: str) -> list[str]:
    return [f"Sure: {text}", f"{text}{text}", text[: len(text) // 2], f"```json\n{text}\n```", f" {text}\n"]


ANSWERS = (
    PROPOSALS.map(written)
    | PROPOSALS.map(written)
    | PROPOSALS.map(written).flatmap(lambda text: st.sampled_from(broken(text)))
    | st.sampled_from(["", "{}", "[]", "null", '{"a": 1, "a": 2}'])
    | JUNK.map(written)
)
VERDICTS_OF_DECIDERS = DECISIONS.map(written) | DECISIONS.map(written) | st.sampled_from(["", "{}", "cut", "error"])


NOTHING_SET_ASIDE = written({"no_evidence_group_ids": [], "decision_analysis": ""})


class Said:
    """A reflector that says what was drawn, in turn, whatever it is asked; some of its answers never come. Asked the
    same again, it says the same: a run that goes on does not ask for what it has on record."""

    def __init__(self, decisions: list[str], proposals: list[str]) -> None:
        self._said = {"decide": decisions, "propose": proposals}
        self._at = Counter[str]()
        self._answers: dict[str, str] = {}

    def decide(self, request: ReflectionRequest) -> str | Completion:
        return self._next("decide", request)

    def propose(self, request: ReflectionRequest) -> str | Completion:
        return self._next("propose", request)

    def _next(self, role: str, request: ReflectionRequest) -> str | Completion:
        question = f"{role} {request!r}"
        if question not in self._answers:
            self._answers[question] = self._said[role][self._at[role] % len(self._said[role])]
            self._at[role] += 1
        said = self._answers[question]
        if said == "error":
            raise ModelError("none")
        return Completion("{", finish_reason="length") if said == "cut" else said

    @property
    def model(self) -> ScriptedJudge:
        return ScriptedJudge(obedient, self.decide, self.propose)


def nobody_is_lost(run: Ran) -> None:
    """Each candidate of each epoch ends once: covered, set aside or given up."""
    fates: Counter[tuple[int, str]] = Counter()
    selected: set[tuple[int, str]] = set()
    epoch = 0
    for event in run.events:
        if event.type == "epoch_started":
            epoch = event.data["epoch"]
        elif event.type == "selected":
            selected |= {(epoch, one["ticket_key"]) for one in event.data["candidates"]}
        elif event.type == "closed":
            fates.update((epoch, key) for key in event.data["covered"])
        elif event.type == "queued":
            own = ("reflection_no_evidence_after_gt", "budget_exhausted")
            fates.update((epoch, one["ticket_key"]) for one in event.data["rows"] if one["reason_code"] in own)
    assert set(fates) == selected
    assert set(fates.values()) <= {1}


@FEW
@given(
    st.lists(VERDICTS_OF_DECIDERS, min_size=1, max_size=4),
    st.lists(ANSWERS, min_size=1, max_size=6),
    st.sampled_from(['trial = "off"', "[trial]\nmin_tickets = 2"]),
    st.sampled_from(["", "[budget]\ncalls = 24", "[budget]\ncalls_per_epoch = 13"]),
    st.integers(1, 5),
    st.integers(0, 2),
)
@example(["{}"], ["{}"], 'trial = "off"', "", 3, 2)
@example([NOTHING_SET_ASIDE, ""], [""], 'trial = "off"', "[budget]\ncalls_per_epoch = 13", 5, 0)
@example([written({"no_evidence_group_ids": KEYS, "decision_analysis": ""})], ["{}"], 'trial = "off"', "", 3, 0)
def test_whatever_a_reflector_says_no_ticket_is_lost(
    decisions: list[str], proposals: list[str], trial: str, budget: str, batch: int, retries: int
) -> None:
    toml = (
        "epochs = 2\nsampler = [{ temperature = 0.1 }]\n"
        f"{trial}\n[reflection]\nbatch_size = {batch}\nretry_budget_per_group_per_epoch = {retries}\n"
        f"hypothesis_min_unique_ticket_keys = 2\n[split]\ntrain = 0.7\nvalidation = 0.2\ntest = 0.1\n{budget}\n"
    )
    rules = RULES | {"G1": mentions("unicorns"), "G2": mentions("griffins", "pass")}
    with tempfile.TemporaryDirectory() as folder:
        mission = mission_in(Path(folder), TICKETS, toml, rules)
        said = Said(decisions, proposals)
        model = said.model
        run = learn(mission, model)
        nobody_is_lost(run)
        assert model.calls == run.state.spent["calls"]
        # The scaffold, in the guidance and in what the judge was shown.
        assert run.state.guidance.scaffold == {"S1": RULES["S1"]}
        assert "G0" in run.rules
        assert all(f"[S1] {RULES['S1']}" in rollout.prompt.shared for rollout in model.rollouts)
        # Whatever was not taken has a reason that is known.
        known = {*get_args(AnswerReason), *get_args(ItemReason)}
        assert {rejection["reason"] for rejection in run.state.rejections} <= known == set(MEANINGS)
        for event in run.of("proposed"):
            assert set(event["covered"]) <= set(event["cases"]) <= set(KEYS)
        # What is on record leads to the same guidance, and so does a run that goes on from half of it.
        write_artifacts(run.folder, run.events, run.state, mission.clock)
        found = replay_run(run.folder)
        assert found.differences == ()
        assert found.guidance == run.state.guidance
        path = run.folder / "events.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: max(1, len(lines) // 2)]))
        resumed = learn(mission, said.model, resume=run.folder)
        if not run.state.spent["errors"] and not run.of("budget_hit"):
            # What never came is asked for again. Answers that the first run paid for later than the cut are kept, so
            # that one that has hit a budget may get further now.
            assert substance(resumed.events) == substance(run.events)
        nobody_is_lost(resumed)


@MODEST
@given(ANSWERS, st.integers(0, 3), st.integers(0, 3))
def test_whatever_is_taken_can_be_made_and_leaves_the_scaffold_alone(said: str, most: int, left: int) -> None:
    guidance = guidance_of(G1=mentions("unicorns"), G2=mentions("griffins", "pass"))
    cases = [case(key, "a page") for key in KEYS[:5]]
    found = read_proposal(said, terms_of(cases, guidance, max_operations=most, changes_left=left))
    if isinstance(found, UnusableAnswer):
        assert found.reason in get_args(AnswerReason)
        return
    data = json.loads(said.strip().removeprefix("```json").removesuffix("```"))
    assert len(found.operations) <= min(most, left)
    everything = len(found.operations) + len(found.hypotheses) + len(found.rejections)
    assert everything == len(data["operations"]) + len(data.get("hypotheses", []))
    assert found.covered <= set(KEYS[:5])
    assert {rejection.reason for rejection in found.rejections} <= set(get_args(ItemReason))
    canonical_json([rejection.as_dict() for rejection in found.rejections])
    for change in found.operations:
        guidance = apply_change(guidance, change, "")
        assert guidance.scaffold == {"S1": RULES["S1"]}
        assert "G0" in guidance.experiences
    for text in [operation.text for operation in (*found.operations, *found.hypotheses) if operation.text is not None]:
        assert polarity(text, ENGLISH) in ("pass", "fail")
        assert len(text) <= 160


@MODEST
@given(ANSWERS)
def test_an_answer_is_read_the_same_whatever_white_space_is_around_it(said: str) -> None:
    terms = terms_of([case(key, "a page") for key in KEYS])
    one, other = read_proposal(said, terms), read_proposal(f"\n \t{said} \r\n", terms)
    if isinstance(one, OpsPass):
        assert one == other
    else:
        assert isinstance(other, UnusableAnswer)
        assert one.reason == other.reason


@MODEST
@given(VERDICTS_OF_DECIDERS)
def test_a_decision_speaks_only_of_cases_that_it_was_asked_about(said: str) -> None:
    cases = [case(key, "a page") for key in KEYS[:4]]
    found = read_decision(said, cases)
    if not isinstance(found, UnusableAnswer):
        assert set(found.no_evidence) <= set(KEYS[:4])
        assert len(set(found.no_evidence)) == len(found.no_evidence)


# Strict JSON


@MODEST
@given(st.dictionaries(st.text(max_size=4), JUNK, max_size=4))
def test_an_object_comes_back_as_it_was_or_not_at_all(data: dict[str, Any]) -> None:
    found = read_json_object(json.dumps(data))
    try:
        canonical_json(data)
    except ValueError:
        assert isinstance(found, UnusableAnswer)
    else:
        assert found == data


@MODEST
@given(
    st.dictionaries(st.text("ab", min_size=1, max_size=4), st.integers(), max_size=4), st.text(min_size=1, max_size=5)
)
def test_whatever_stands_around_an_object_spoils_it(data: dict[str, Any], around: str) -> None:
    assume(around.strip() and "{" not in around and "`" not in around)
    assert isinstance(read_json_object(f"{around}{json.dumps(data)}"), UnusableAnswer)
    assert isinstance(read_json_object(f"{json.dumps(data)}{around}"), UnusableAnswer)


@MODEST
@given(st.text(max_size=40))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    found = read_json_object(text)
    assert isinstance(found, UnusableAnswer | dict)
    if isinstance(found, dict):
        canonical_json(found)


# Wording

NUMBERS = st.integers(-999, 999)
SIGNS = st.sampled_from(["<", ">", "", "≥"])
WORDS = st.text("abcdefg xyz.,-·，。复核通过不", max_size=25)


@MODEST
@given(WORDS, WORDS, st.sampled_from(CHINESE.wording.third_state), st.sampled_from(["", " ", "·", "-", "，", "\u3000"]))
def test_a_chinese_third_state_is_found_wherever_it_stands(before: str, after: str, phrase: str, between: str) -> None:
    text = f"{before}{between.join(phrase)}{after}，判定不通过"
    assert contains(text, phrase, CHINESE)
    found = wording_objection(text, CHINESE, 500, (), ())
    assert found is not None
    assert found.reason == "third_state"


@MODEST
@given(WORDS, WORDS, st.sampled_from(ENGLISH.wording.third_state), st.sampled_from([" ", "-", "_", ", ", "\u3000"]))
def test_an_english_third_state_is_found_as_words_and_not_inside_of_them(
    before: str, after: str, phrase: str, between: str
) -> None:
    said = between.join(phrase.split(" "))
    assert contains(f"{before} {said.upper()} {after}", phrase, ENGLISH)
    assert not contains(f"q{phrase}q", phrase, ENGLISH)


@MODEST
@given(st.text(max_size=40), st.sampled_from([ENGLISH, CHINESE]))
def test_no_text_makes_the_wording_raise_and_normalising_twice_is_normalising_once(text: str, language: Any) -> None:
    wording_objection(text, language, 160, ("abc",), (text,))
    assert polarity(text, language) in ("pass", "fail", "both", "none")
    once = normalise_rule(text, language)
    assert normalise_rule(once, language) == once or any(not one.isalnum() for one in once)


@MODEST
@given(
    WORDS,
    st.sampled_from([(ENGLISH, "the verdict is pass", "the verdict is fail"), (CHINESE, "则判定通过", "则判定不通过")]),
)
def test_opposite_conclusions_never_share_a_signature(condition: str, verdicts: tuple[Any, str, str]) -> None:
    language, good, bad = verdicts
    assert rule_signature(f"{condition} {good}", language) != rule_signature(f"{condition} {bad}", language)


@MODEST
@given(NUMBERS, NUMBERS, SIGNS, SIGNS)
def test_rules_with_other_numbers_never_share_a_signature(one: int, other: int, first: str, second: str) -> None:
    assume((one, first) != (other, second))
    rule = "When the count is {} {}, the verdict is fail."
    assert rule_signature(rule.format(first, one), ENGLISH) != rule_signature(rule.format(second, other), ENGLISH)


# Splits

MEMBERS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["pass", "fail"]), st.integers(0, 20) | st.none()), max_size=60
).map(
    lambda found: [
        SplitMember(f"g{group}::{label}", f"g{group}", f"g{group}" if cluster is None else f"c{cluster}", label)  # type: ignore[arg-type]
        for (group, label), cluster in {(group, label): cluster for group, label, cluster in found}.items()
    ]
)
SHARES = st.sampled_from([(0.6, 0.2, 0.2), (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.34, 0.33, 0.33), (0.8, 0.0, 0.2)])


@MODEST
@given(MEMBERS, SHARES, st.integers(0, 99), st.randoms())
def test_parts_hold_everybody_once_and_divide_neither_cluster_nor_group(
    members: list[SplitMember], shares: tuple[float, float, float], seed: int, dice: Any
) -> None:
    split = Split(train=shares[0], validation=shares[1], test=shares[2])
    splits = split_tickets(members, split, seed)
    assert sorted(key for part in splits for key in part) == sorted(member.key for member in members)
    part_of = {key: part for part in PARTS for key in getattr(splits, part)}
    for name in ("cluster", "group"):
        parts: dict[str, set[str]] = {}
        for member in members:
            parts.setdefault(getattr(member, name), set()).add(part_of[member.key])
        assert all(len(found) == 1 for found in parts.values())
    shuffled = list(members)
    dice.shuffle(shuffled)
    assert split_tickets(shuffled, split, seed) == splits
    assert all(not getattr(splits, part) for part in PARTS if not getattr(split, part))


@MODEST
@given(st.integers(0, 60), st.integers(0, 60), SHARES, st.integers(0, 99))
def test_tickets_on_their_own_are_divided_by_shares_within_each_label(
    passes: int, fails: int, shares: tuple[float, float, float], seed: int
) -> None:
    members = [SplitMember(f"p{at}::pass", f"p{at}", f"p{at}", "pass") for at in range(passes)]
    members += [SplitMember(f"f{at}::fail", f"f{at}", f"f{at}", "fail") for at in range(fails)]
    splits = split_tickets(members, Split(train=shares[0], validation=shares[1], test=shares[2]), seed)
    for label, total in (("pass", passes), ("fail", fails)):
        for part, share in zip(splits, shares, strict=True):
            assert abs(sum(key.endswith(label) for key in part) - share * total) < 2


# Closure and the pool


@MODEST
@given(st.lists(st.sampled_from(KEYS), unique=True), st.sets(st.sampled_from(KEYS)), st.integers(0, 4), st.data())
def test_closing_divides_those_who_were_asked(asked: list[str], covered: set[str], budget: int, data: Any) -> None:
    attempts = {key: data.draw(st.integers(1, 5)) for key in asked}
    found = close_batch(asked, covered, attempts, budget)
    assert sorted((*found.covered, *found.retry, *found.exhausted)) == sorted(asked)
    assert set(found.covered) == covered & set(asked)
    assert all(attempts[key] > budget for key in found.exhausted)
    assert all(attempts[key] <= budget for key in found.retry)


@MODEST
@given(st.integers(1, 1000), st.integers(0, 40))
def test_a_question_is_half_of_the_one_before_and_never_empty(size: int, attempt: int) -> None:
    assert retry_batch_size(size, attempt) == max(1, size // 2**attempt)


@MODEST
@given(
    st.lists(st.integers(), unique=True, max_size=40).map(lambda found: [str(one) for one in found]), st.integers(1, 9)
)
def test_batches_hold_everybody_in_order(keys: list[str], size: int) -> None:
    found = split_batches(keys, size)
    assert [key for batch in found for key in batch] == keys
    assert all(len(batch) == size for batch in found[:-1])
    assert len(found) == math.ceil(len(keys) / size)


@MODEST
@given(st.integers(0, 30), st.integers(0, 30))
def test_any_stretch_of_the_mixed_order_has_its_share_of_either_label(passes: int, fails: int) -> None:
    order = mix_labels([f"p{at:02d}" for at in range(passes)], [f"f{at:02d}" for at in range(fails)])
    assert len(order) == len(set(order)) == passes + fails
    for upto in range(1, len(order) + 1):
        share = sum(one[0] == "p" for one in order[:upto])
        assert abs(share - upto * passes / (passes + fails)) <= 1.0


PROPOSED = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 4), st.lists(st.sampled_from(KEYS), min_size=1, max_size=4)),
    max_size=12,
)


@MODEST
@given(PROPOSED, st.integers(1, 3), st.integers(1, 8))
def test_the_pool_counts_cycles_and_tickets_and_nothing_twice(
    proposed: list[tuple[str, int, list[str]]], cycles: int, tickets: int
) -> None:
    pool: dict[str, Any] = {}
    for word, cycle, keys in proposed:
        one = add_support(pool, HypothesisProposal(mentions(word), "f", tuple(keys)), f"1.{cycle}", ENGLISH)
        pool[one.signature] = one
    for word in "ab":
        known = pool.get(rule_signature(mentions(word), ENGLISH))
        said = [(cycle, keys) for name, cycle, keys in proposed if name == word]
        assert (known is not None) == bool(said)
        if known is not None:
            assert set(known.cycles) == {f"1.{cycle}" for cycle, _ in said}
            assert sorted(known.evidence) == sorted({key for _, keys in said for key in keys})
    ripe = promotable_hypotheses(pool, cycles, tickets)
    assert all(len(one.cycles) >= cycles and len(one.evidence) >= tickets for one in ripe)
    assert len(ripe) == sum(len(one.cycles) >= cycles and len(one.evidence) >= tickets for one in pool.values())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.sampled_from([1, 4]))
def test_no_budget_is_ever_overdrawn(calls: int, concurrency: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        toml = (
            f"concurrency = {concurrency}\nepochs = 2\n[trial]\nmin_tickets = 2\n[reflection]\nbatch_size = 4\n"
            f"[split]\ntrain = 0.7\nvalidation = 0.3\ntest = 0.0\n[budget]\ncalls = {calls}\n"
        )
        model = captcha_model()
        run = learn(mission_in(Path(folder), TICKETS, toml), model)
        assert model.calls == run.state.spent["calls"] <= calls
        nobody_is_lost(run)
