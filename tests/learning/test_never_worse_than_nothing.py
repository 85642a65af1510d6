"""A run is adopted only if it is better than always saying the same, and than the guidance before it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ExitCode
from donewhen.judging.guidance import Guidance, Op
from donewhen.judging.mission import read_mission
from donewhen.judging.mission_settings import MissionFile, Trial
from donewhen.learning.after.adoption import Adoption, adoption_of
from donewhen.learning.after.learn_mission import LearnResult, learn
from donewhen.learning.measuring.trial import LabelledVerdict, run_trial
from donewhen.learning.running.run_state import RunState
from donewhen.models.contrast import Contrast, default_rule
from donewhen.models.roles import Binary

WORDS = ("page", "list", "price", "order", "table", "button", "search", "value", "result", "image", "header", "field")
SHARES = (0.2, 0.5, 0.8)
TOML = 'mission = "m"\nseed = {seed}\nepochs = 2\n'


def learned(folder: Path, rows: Sequence[dict[str, Any]], default: Binary = "pass", seed: int = 1) -> LearnResult:
    folder.mkdir(parents=True)
    (folder / "mission.toml").write_text(TOML.format(seed=seed))
    (folder / "initial_guidance.json").write_text(json.dumps({"G0": default_rule(default, "en")}))
    (folder / "tickets.jsonl").write_text("".join(json.dumps({"mission": "m", **row}) + "\n" for row in rows))
    return learn(read_mission(folder), Contrast())


def random_rows(share: float, seed: int, count: int = 100) -> list[dict[str, Any]]:
    chance = random.Random(f"{share} {seed}")
    return [
        {
            "group_id": f"t{number}",
            "label": "pass" if chance.random() < share else "fail",
            "text": " ".join(chance.choices(WORDS, k=chance.randint(20, 40))) + f"\nscore: {chance.randint(1, 5)}",
        }
        for number in range(count)
    ]


def telling_rows(share: float, count: int = 160) -> list[dict[str, Any]]:
    chance = random.Random(share)
    rows = random_rows(share, 0, count)
    for row in rows:
        row["text"] += f"\nlast score: {chance.randint(4, 5) if row['label'] == 'pass' else chance.randint(1, 3)}"
    return rows


def test_random_labels_are_not_adopted(tmp_path: Path) -> None:
    """Random words with random labels, 20, 50 and 80 % of them pass, ten seeds each."""
    adopted = [
        (share, seed)
        for share in SHARES
        for seed in range(10)
        if learned(tmp_path / f"{share}-{seed}", random_rows(share, seed), seed=seed).guidance is not None
    ]
    assert len(adopted) <= 1, adopted


@pytest.mark.parametrize("default", ["pass", "fail"])
@pytest.mark.parametrize("share", SHARES)
def test_a_judge_that_tells_them_apart_is_adopted_whatever_the_default(
    tmp_path: Path, share: float, default: Binary
) -> None:
    result = learned(tmp_path / "m", telling_rows(share), default)
    assert result.adoption.accepted
    assert result.guidance is not None
    assert result.exit_code is ExitCode.PASS
    after = result.report.after
    assert after is not None
    assert after.accuracy is not None
    assert after.accuracy.value > 0.9


def state_with(validation: Sequence[list[Any]], test: Sequence[list[Any]]) -> RunState:
    """A run that has changed the guidance. Rows: label, verdict before, verdict after."""
    state = RunState(guidance=Guidance("m", 1, "", {"G0": "x"}))
    state.changes.append({"change": {}})
    state.assessed = [[f"v{number}", *row, None] for number, row in enumerate(validation)]
    state.evaluations = {
        "before": [[f"t{number}", row[0], row[1], 1.0] for number, row in enumerate(test)],
        "after": [[f"t{number}", row[0], row[2], 1.0] for number, row in enumerate(test)],
    }
    return state


GOOD = [["pass", "pass", "pass"]] * 10 + [["fail", "pass", "fail"]] * 10
SETTINGS = MissionFile(mission="m")


def adoption(validation: Sequence[list[Any]], test: Sequence[list[Any]], **clusters: str) -> Adoption:
    return adoption_of(state_with(validation, test), SETTINGS, clusters)


def test_better_on_both_parts_is_adopted() -> None:
    assert adoption(GOOD, GOOD).accepted


def test_one_part_on_which_it_is_no_better_is_enough_to_refuse() -> None:
    same = [["pass", "pass", "pass"]] * 10 + [["fail", "pass", "pass"]] * 10
    for parts in ((GOOD, same), (same, GOOD)):
        assert not adoption(*parts).accepted
    assert "always saying fail has 10" in adoption(GOOD, same).reason


def test_always_fail_is_a_judge_to_beat_whatever_the_rules_before_were() -> None:
    """The guidance before passed everything, so that even a rule that fails everything looks like a gain."""
    rare = [["pass", "pass", "fail"]] * 4 + [["fail", "pass", "fail"]] * 16
    assert not adoption(rare, rare).accepted


def test_no_better_than_the_rules_before_is_refused() -> None:
    known = [["pass", "pass", "pass"]] * 10 + [["fail", "fail", "fail"]] * 10
    assert "guidance before has 20" in adoption(known, known).reason


def test_tickets_of_one_cluster_count_once() -> None:
    """Ten tickets more are right, but they are one cluster."""
    rows = [["pass", "fail", "pass"]] * 10 + [["fail", "fail", "fail"]] * 9 + [["fail", "fail", "pass"]] * 2
    assert adoption(rows, rows).accepted
    clusters = {f"{part}{number}": "one" for part in "vt" for number in range(10)}
    assert "may be chance" in adoption(rows, rows, **clusters).reason


def test_more_false_releases_than_the_mission_allows_are_refused() -> None:
    rows = [["pass", "fail", "pass"]] * 20 + [["fail", "fail", "fail"]] * 13 + [["fail", "fail", "pass"]] * 7
    assert "14 of 40 bad tickets" in adoption(rows, rows).reason


def test_without_unseen_tickets_nothing_is_adopted() -> None:
    for parts in (([], []), (GOOD, []), ([], GOOD)):
        assert not adoption(*parts).accepted
    assert "no test ticket" in adoption(GOOD, []).reason


def test_a_run_that_has_spent_its_budget_is_decided_by_the_test_tickets() -> None:
    """Calls are reserved for these. Without them, nothing is adopted."""
    same = [["pass", "pass", "pass"]] * 10 + [["fail", "pass", "pass"]] * 10
    for test, accepted in ((GOOD, True), (same, False), ([], False)):
        state = state_with([], test)
        state.status = "budget_exhausted"
        assert adoption_of(state, SETTINGS, {}).accepted is accepted


def test_without_trials_nothing_is_decided() -> None:
    off = MissionFile(mission="m", trial="off")
    assert adoption_of(state_with([], []), off, {}).accepted


def judged(rows: Sequence[tuple[Binary, Binary]]) -> dict[str, LabelledVerdict]:
    return {f"t{number}": LabelledVerdict(label, verdict) for number, (label, verdict) in enumerate(rows)}


def test_a_rule_that_fires_on_nearly_everything_passes_no_trial() -> None:
    labels: list[Binary] = ["fail"] * 30 + ["pass"] * 10
    before = judged([(label, "pass") for label in labels])
    everything = judged([(label, "pass" if number in (0, 39) else "fail") for number, label in enumerate(labels)])
    some = judged([(label, "fail" if number < 15 else "pass") for number, label in enumerate(labels)])
    assert run_trial("add", before, everything, Trial(), 1).reason == "trivial"
    # Still worse than always saying fail, but it tells them apart.
    assert run_trial("add", before, some, Trial(), 1).reason == "better"


def released_by(op: Op, released: int, allowed: int, passed: int) -> str:
    """A change of a judge that blocks everything but the first ``passed`` pieces of good work."""
    labels: list[Binary] = ["pass"] * 20 + ["fail"] * 20
    before = judged([(label, "pass" if number < passed else "fail") for number, label in enumerate(labels)])
    after = judged([(label, "pass" if number < 20 + released else "fail") for number, label in enumerate(labels)])
    settings = Trial(max_more_false_releases=allowed)
    # An adopted judge might release as much.
    assert released / 20 < settings.max_false_release
    return run_trial(op, before, after, settings, 1).reason


@pytest.mark.parametrize(("op", "made"), [("add", "better"), ("update", "no_worse"), ("delete", "no_worse")])
def test_a_change_that_releases_more_is_refused_although_the_released_share_would_be_adopted(op: Op, made: str) -> None:
    for released, allowed, accepted in ((0, 0, True), (1, 0, False), (1, 1, True), (4, 3, False), (4, 4, True)):
        assert released_by(op, released, allowed, passed=1) == (made if accepted else "more_false_releases")


def test_only_the_first_rule_that_passes_anything_may_release_a_little() -> None:
    """A judge that blocks everything has no false release; nothing could ever be learned from there."""
    assert [released_by("add", released, 0, passed=0) for released in (1, 2, 3)] == ["better"] * 2 + [
        "more_false_releases"
    ]
    assert released_by("add", 1, 0, passed=1) == "more_false_releases"
    for op in ("update", "delete", "merge"):
        assert released_by(op, 1, 0, passed=0) == "more_false_releases"


def test_a_more_probable_label_does_not_make_up_for_a_false_release() -> None:
    labels: list[Binary] = ["fail"] * 20 + ["pass"] * 20
    before = {
        f"t{n}": LabelledVerdict(label, label, score=1.0 if label == "pass" else -1.0) for n, label in enumerate(labels)
    }
    before["t39"] = LabelledVerdict("pass", "fail", score=-1.0)
    surer = {key: row._replace(score=3 * (row.score or 0)) for key, row in before.items()}
    surer["t39"] = LabelledVerdict("pass", "pass", score=1.0)
    assert run_trial("add", before, surer, Trial(), 1).accepted
    releasing = surer | {"t0": LabelledVerdict("fail", "pass", score=1.0)}
    assert run_trial("add", before, releasing, Trial(), 1).reason == "more_false_releases"
    assert run_trial("add", before, releasing, Trial(max_more_false_releases=1), 1).reason == "better_scores"


def test_a_rule_that_only_makes_labels_more_probable_passes_if_that_is_sure() -> None:
    labels: list[Binary] = ["fail"] * 20 + ["pass"] * 20
    before = {
        f"t{n}": LabelledVerdict(label, label, score=1.0 if label == "pass" else -1.0) for n, label in enumerate(labels)
    }
    surer = {key: row._replace(score=3 * (row.score or 0)) for key, row in before.items()}
    assert run_trial("add", before, surer, Trial(), 1).reason == "better_scores"
    assert run_trial("add", surer, before, Trial(), 1).reason == "not_better"
    unscored = {key: row._replace(score=None) for key, row in surer.items()}
    assert run_trial("add", before, unscored, Trial(), 1).reason == "not_better"
