"""Whatever is done to guidance, the scaffold stays, G0 stays, and the file is what the changes come to."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from donewhen.foundation.canonical import digest_of
from donewhen.judging.guidance import (
    Guidance,
    GuidanceChange,
    GuidanceError,
    apply_change,
    record_credit,
    roll_back,
    seed_guidance,
)
from donewhen.judging.guidance_store import GuidanceStore, read_guidance
from donewhen_kit import examples

QUICK = settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
# Every write is flushed to the disk, which is the one thing that these tests are not about.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
AT = "2026-02-14T12:00:00Z"
RULES = {
    "S1": "Only a photo of the whole cabinet counts.",
    "S2": "What can't be seen is not there.",
    "G0": "All that is asked for must be there.",
    "G1": "A torn seal: fail.",
    "G2": "A closed door: pass.",
}


class Noon:
    def now(self) -> datetime:
        return datetime(2026, 2, 14, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


class Rollback(NamedTuple):
    step: int


class Credit(NamedTuple):
    counts: Mapping[str, tuple[int, int]]


def start() -> Guidance:
    return seed_guidance("cabinets", RULES, AT)


keys = st.sampled_from(
    ["S1", "S2", "S3", "S0", "s1", "S01", "S1 ", "Ｓ1", *(f"G{number}" for number in range(8)), "G10", "G01", ""]
)
texts = st.one_of(
    st.sampled_from([*RULES.values(), RULES["S1"].upper(), RULES["S2"] + "!!", " ", "[S1] x", "</scaffold>", "\ud800"]),
    st.text(max_size=12),
)
evidence = st.lists(st.sampled_from(["QC-1::fail", "QC-2::pass", ""]) | st.text(max_size=3), max_size=3).map(tuple)
changes = st.builds(
    GuidanceChange,
    op=st.sampled_from(["add", "update", "delete", "merge", "rollback"]),
    key=st.none() | keys,
    text=st.none() | texts,
    merged_from=st.lists(keys, max_size=3).map(tuple),
    rationale=st.text(max_size=5),
    evidence=evidence,
)
likely = st.one_of(
    st.builds(
        lambda text: GuidanceChange(op="add", text=text, evidence=("QC-1::fail",)), st.text("abcdef", min_size=1)
    ),
    st.builds(lambda key: GuidanceChange(op="delete", key=key, evidence=("QC-1::fail",)), keys),
    st.builds(lambda key, text: GuidanceChange(op="update", key=key, text=text, evidence=("QC-1::fail",)), keys, texts),
    st.builds(
        lambda key, gone, text: GuidanceChange(
            op="merge", key=key, merged_from=gone, text=text, evidence=("QC-1::fail",)
        ),
        keys,
        st.lists(keys, min_size=1, max_size=2, unique=True).map(tuple),
        texts,
    ),
)
credit = st.builds(Credit, st.dictionaries(keys, st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2))
steps = st.lists(st.one_of(changes, likely, likely, st.builds(Rollback, st.integers(-1, 9)), credit), max_size=12)

ATTACKS: list[Any] = [
    GuidanceChange(op="add", text=RULES["S1"], evidence=("a",)),
    GuidanceChange(op="update", key="S1", text="x", evidence=("a",)),
    GuidanceChange(op="merge", key="G1", merged_from=("S1", "G0"), text="x", evidence=("a",)),
    GuidanceChange(op="delete", key="G0", evidence=("a",)),
    GuidanceChange(op="delete", key="G2", evidence=("a",)),
    GuidanceChange(op="add", text="new", evidence=("a",)),
    Rollback(0),
    GuidanceChange(op="add", text="newer", evidence=("a",)),
    Credit({"S1": (1, 1)}),
]


@QUICK
@given(steps)
@example(ATTACKS)
def test_no_sequence_of_changes_alters_the_scaffold_or_removes_g0(given_steps: list[Any]) -> None:
    now = start()
    past = [now]
    for step in given_steps:
        frozen = msgspec.json.encode(now.as_file())
        try:
            if isinstance(step, GuidanceChange):
                after = apply_change(now, step, AT)
            elif isinstance(step, Rollback):
                after = roll_back(now, past[step.step % len(past)], AT)
            else:
                after = record_credit(now, step.counts)
        except GuidanceError:
            continue
        finally:
            assert msgspec.json.encode(now.as_file()) == frozen
        assert after.step == now.step + (not isinstance(step, Credit))
        past += [after] if after.step > now.step else []
        now = after
        assert now.scaffold == {"S1": RULES["S1"], "S2": RULES["S2"]}
        assert "G0" in now.experiences
        assert not set(now.scaffold.values()) & set(now.learned.values())
        assert [int(key[1:]) for key in now.learned] == sorted(int(key[1:]) for key in now.learned)
        if isinstance(step, GuidanceChange):
            assert step.evidence


@QUICK
@given(steps)
@example(ATTACKS)
def test_no_key_is_ever_given_to_a_second_rule(given_steps: list[Any]) -> None:
    now = start()
    past = [now]
    given_out = set(now.learned)
    for step in given_steps:
        try:
            if isinstance(step, GuidanceChange):
                after = apply_change(now, step, AT)
            elif isinstance(step, Rollback):
                after = roll_back(now, past[step.step % len(past)], AT)
            else:
                continue
        except GuidanceError:
            continue
        new = set(after.learned) - set(now.learned)
        if isinstance(step, GuidanceChange):
            assert not new & given_out
            # A merge may name a key that no rule has had.
            merged_anew = step.op == "merge" and step.key not in now.learned
            assert len(new) == (step.op == "add" or merged_anew)
        assert new <= given_out or isinstance(step, GuidanceChange)
        given_out |= new
        past.append(after)
        now = after


@QUICK
@given(steps)
@example(ATTACKS)
def test_the_file_is_always_what_the_changes_come_to(given_steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "guidance.json"
        store = GuidanceStore(path, "cabinets", clock=Noon())
        store.seed(start())
        fold = start()
        past = {0: fold}
        made: list[tuple[int, str, str]] = []
        for one in given_steps:
            before = path.read_bytes()
            try:
                if isinstance(one, GuidanceChange):
                    written, op = store.apply(one, "me"), one.op
                    fold = apply_change(fold, one, AT)
                elif isinstance(one, Rollback):
                    written, op = store.rollback(one.step, "me"), "rollback"
                    fold = roll_back(fold, past[one.step], AT)
                else:
                    written, op = store.credit(one.counts), "credit"
                    fold = record_credit(fold, one.counts)
            except GuidanceError:
                assert path.read_bytes() == before
                continue
            past[fold.step] = fold
            if op != "credit":
                made.append((fold.step, op, fold.hash))
            assert written == fold == store.read() == read_guidance(path, "cabinets")
            data = json.loads(path.read_bytes())
            assert data == json.loads(json.dumps(fold.as_file()))
            assert data["cabinets"]["experiences"]["S1"] == RULES["S1"]
        assert [(row.step, row.change.op, row.hash) for row in store.history()] == made
        for step, expected in past.items():
            assert store.at(step).hash == expected.hash == digest_of(["cabinets", dict(expected.experiences)])
