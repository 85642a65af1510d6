"""Build the report of a run from its events and tickets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.foundation.plain_text import one_line
from donewhen.judging.guidance import FIRST, Guidance
from donewhen.judging.mission import Mission
from donewhen.learning.after.adoption import Adoption
from donewhen.learning.after.report_data import (
    Baseline,
    BaselineName,
    BudgetRow,
    Cost,
    DroppedRow,
    EpochRow,
    HypothesisRow,
    LearningReport,
    PartSizes,
    Prevalence,
    QueueRow,
    RemovedRow,
    RuleRow,
    SplitSizes,
    Status,
    TrialRow,
)
from donewhen.learning.after.report_notes import with_notes
from donewhen.learning.measuring.keyed_baseline import word_count_baseline_by_key
from donewhen.learning.measuring.metrics import Measures, corrected_prevalence, mcnemar, measure, paired_bootstrap
from donewhen.learning.measuring.splits import PARTS, Splits
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.word_baseline import Predict, majority_baseline
from donewhen.learning.reflection.hypotheses import PooledHypothesis, missing_support
from donewhen.learning.reflection.rejections import MEANINGS
from donewhen.learning.running.run_folders import PreparedRun
from donewhen.learning.running.run_state import EpochState, RunState, initial_guidance_of

_RESAMPLES = 2000
_EXAMPLES = 5

Row = tuple[str, Binary, Binary | None]


def build_report(
    prepared: PreparedRun, state: RunState, *, openings: int = 1, adoption: Adoption | None = None
) -> LearningReport:
    """Build the report of a run, finished or not."""
    mission, reader, splits = prepared.mission, prepared.reader, prepared.splits
    before, after = (_rows(state.evaluations.get(when, [])) for when in ("before", "after"))
    mistakes = {key: label != verdict for key, label, verdict in after}
    paired = bool(after) and mistakes.keys() == {key for key, _, _ in before}
    wrong = [label != verdict for _, label, verdict in before], [mistakes.get(key, True) for key, _, _ in before]
    learned = (*splits.train, *splits.validation)
    now = measure((label, verdict) for _, label, verdict in after or before)
    report = LearningReport(
        mission=mission.name,
        run=prepared.id,
        model=state.manifest["model"],
        status=_status(state),
        finished_at=state.finished_at,
        seed=mission.settings.seed,
        splits=msgspec.structs.replace(
            _split_sizes(reader, splits, openings),
            test_learned_from=learned_from(initial_guidance_of(state.manifest), splits.test),
        ),
        before=measure((label, verdict) for _, label, verdict in before),
        after=measure((label, verdict) for _, label, verdict in after) if after else None,
        comparison=mcnemar(*wrong) if paired else None,
        difference=paired_bootstrap(*wrong, _RESAMPLES, mission.settings.seed) if paired else None,
        guidance_before=initial_guidance_of(state.manifest).step,
        guidance_after=state.guidance.step,
        baselines=_baselines(reader, learned, after or before) if before else (),
        prevalence=_prevalence(state, now),
        not_adopted=adoption.reason if adoption is not None and not adoption.accepted else None,
        trial_off=mission.settings.trial == "off",
        epochs=tuple(map(_epoch_row, state.epochs)),
        rules=_rule_rows(state),
        removed=tuple(_removed_rows(state)),
        hypotheses=tuple(_hypothesis_row(hypothesis, mission) for hypothesis in state.pool.values()),
        trials=tuple(map(_trial_row, state.trials)),
        dropped=tuple(_dropped_rows(state)),
        queue=tuple(_queue_row(row, state) for row in state.queue),
        votes=state.votes,
        malformed=dict(state.malformed),
        cost=cost_row(state.spent, mission),
    )
    return with_notes(report)


def learned_from(guidance: Guidance, keys: Iterable[str]) -> int:
    """Count the tickets that are evidence of the guidance's rules."""
    return len({key for meta in guidance.metadata.values() for key in meta.sources} & set(keys))


def cost_row(spent: Mapping[str, float], mission: Mission) -> Cost:
    """The cost of a run, with its budget."""
    budget = mission.settings.budget
    whole = ("rollout_calls", "reflection_calls", "reused", "errors")
    tokens = ("prompt_tokens", "completion_tokens", "cached_tokens")
    return Cost(
        **{name: int(spent.get(name, 0)) for name in (*whole, *tokens)},
        cost=float(spent.get("cost", 0.0)),
        seconds=float(spent.get("seconds", 0.0)),
        budget=BudgetRow(calls=budget.calls, tokens=budget.tokens, cost=budget.cost, seconds=budget.seconds),
    )


def _baselines(reader: TicketReader, learned: Sequence[str], rows: Sequence[Row]) -> tuple[Baseline, ...]:
    """Baselines learned from ``learned`` and compared with the judge on ``rows``."""
    known = [(key, _label(key)) for key in sorted(learned)]
    if not known or not rows:
        return ()
    wrong = [label != verdict for _, label, verdict in rows]
    predictors: dict[BaselineName, Predict] = {"majority": majority_baseline(known)}
    if len({label for _, label in known}) > 1:
        predictors["word_counts"] = word_count_baseline_by_key(reader)(known)
    baselines = []
    for name, predict in predictors.items():
        judged: list[tuple[Binary, Binary]] = [(label, predict(key)) for key, label, _ in rows]
        against = mcnemar([label != verdict for label, verdict in judged], wrong)
        baselines.append(Baseline(name=name, measures=measure(judged), against=against))
    return tuple(baselines)


def _prevalence(state: RunState, now: Measures) -> Prevalence | None:
    """The share of good work among the training tickets, corrected by the error rates on the test tickets.

    None unless all of them were judged with the final guidance.
    """
    if not state.epochs or state.epoch.step != state.guidance.step or not state.epoch.selected:
        return None
    epoch = state.epoch
    corrected = corrected_prevalence(epoch.passes, epoch.rolled, now.tpr, now.tnr)
    return Prevalence(tickets=epoch.rolled, judged_pass=epoch.passes, corrected=corrected)


def _label(key: str) -> Binary:
    return "pass" if key.endswith("::pass") else "fail"


def _rows(rows: Iterable[Sequence[Any]]) -> list[Row]:
    return [(row[0], row[1], row[2]) for row in rows]


def _status(state: RunState) -> Status:
    return "interrupted" if state.status == "running" else state.status


def _split_sizes(reader: TicketReader, splits: Splits, openings: int) -> SplitSizes:
    part_of = {key: part for part in PARTS for key in getattr(splits, part)}
    labels: dict[str, Counter[str]] = defaultdict(Counter)
    clusters: dict[str, set[str]] = defaultdict(set)
    for member in reader.members:
        part = part_of[member.key]
        labels[part][member.label] += 1
        clusters[part].add(member.cluster)
    sizes = {
        part: PartSizes(
            passes=labels[part]["pass"],
            fails=labels[part]["fail"],
            clusters=len(clusters[part]),
            hash=splits.hashes[part],
        )
        for part in PARTS
    }
    return SplitSizes(train=sizes["train"], validation=sizes["validation"], test=sizes["test"], test_openings=openings)


def _epoch_row(state: EpochState) -> EpochRow:
    ended = state.ended or {}
    calls = int(ended.get("calls", 0))
    return EpochRow(
        number=state.number,
        train_accuracy=ended.get("train_accuracy"),
        validation_before=ended.get("validation_before"),
        validation_after=ended.get("validation_after"),
        accepted=state.changes,
        refused=state.refused,
        calls=calls,
    )


def _rule_rows(state: RunState) -> tuple[RuleRow, ...]:
    rows = []
    for key, text in state.guidance.rules.items():
        meta = state.guidance.metadata.get(key)
        row = RuleRow(key=key, text=text)
        if meta is not None and key != FIRST:
            row = RuleRow(
                key=key,
                text=text,
                evidence=meta.sources,
                rationale=meta.rationale,
                hits=meta.hit_count,
                misses=meta.miss_count,
                confidence=meta.confidence if state.credited_on else None,
                measured_on=state.credited_on,
            )
        rows.append(row)
    return tuple(rows)


def _removed_rows(state: RunState) -> Iterable[RemovedRow]:
    for change in state.changes:
        for key, text in change["gone"].items():
            yield RemovedRow(key=key, text=text, why=change["change"]["rationale"], epoch=change["epoch"])


def _hypothesis_row(hypothesis: PooledHypothesis, mission: Mission) -> HypothesisRow:
    reflection = mission.settings.reflection
    minimums = reflection.hypothesis_min_support_cycles, reflection.hypothesis_min_unique_ticket_keys
    return HypothesisRow(
        text=hypothesis.text,
        falsifier=hypothesis.falsifier,
        state=hypothesis.fate,
        cycles=len(hypothesis.cycles),
        evidence=hypothesis.evidence,
        dimension=hypothesis.dimension,
        why=hypothesis.why if hypothesis.fate == "promoted" else missing_support(hypothesis, *minimums),
        became=hypothesis.key,
    )


def _trial_row(data: Mapping[str, Any]) -> TrialRow:
    change = data["change"]
    return TrialRow(
        change=f"{change['op']} {change['key'] or ''}".strip(),
        text=change["text"] or "",
        accepted=data["accepted"],
        tickets=data["tickets"],
        errors_before=data["errors_before"],
        errors_after=data["errors_after"],
        false_releases_before=data["false_releases_before"],
        false_releases_after=data["false_releases_after"],
        share_lower=data["share_lower"],
        why=data["reason"],
        epoch=data["epoch"],
    )


def _dropped_rows(state: RunState) -> Iterable[DroppedRow]:
    by_reason: dict[str, list[str]] = defaultdict(list)
    for rejection in state.rejections:
        by_reason[rejection["reason"]].append(
            f"{rejection['reflection_id']}: {one_line(str(rejection['detail']), 120)}"
        )
    known = {str(name) for name in MEANINGS}
    for reason, examples in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        assert reason in known  # noqa: S101 - the set of reasons is closed
        yield DroppedRow(reason=reason, count=len(examples), examples=tuple(examples[:_EXAMPLES]))


def _queue_row(row: Mapping[str, Any], state: RunState) -> QueueRow:
    return QueueRow(
        ticket_key=row["ticket_key"],
        reason_code=row["reason_code"],
        label=row["gt_label"],
        verdict=row["pred_verdict"],
        note=row["uncertainty_note"],
        epoch=row["epoch"],
        right_since=row["ticket_key"] in state.right,
    )
