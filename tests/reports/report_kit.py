"""Reports to look at: a run as a learner would fill it in, and an audit."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from donewhen.learning.after.report_data import (
    Baseline,
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
    TrialRow,
)
from donewhen.learning.measuring.metrics import corrected_prevalence, mcnemar, measure, paired_bootstrap

LABELS: list[Any] = ["pass"] * 48 + ["fail"] * 92


def judged(tpr: float, tnr: float, seed: int, invalid: int = 0) -> list[Any]:
    """Verdicts on LABELS by a judge with these rates."""
    rng = random.Random(seed)
    right = [rng.random() < (tpr if label == "pass" else tnr) for label in LABELS]
    verdicts: list[Any] = [
        label if good else {"pass": "fail", "fail": "pass"}[label] for label, good in zip(LABELS, right, strict=True)
    ]
    verdicts[:invalid] = [None] * invalid
    return verdicts


def wrong(verdicts: list[Any]) -> list[bool]:
    return [label != verdict for label, verdict in zip(LABELS, verdicts, strict=True)]


def a_run(**changes: Any) -> LearningReport:
    """A run that learned something."""
    first, last = judged(0.6, 0.75, 1), judged(0.83, 0.9, 2, invalid=2)
    words, common = judged(0.65, 0.85, 3), ["fail"] * len(LABELS)
    before, after = (measure(zip(LABELS, one, strict=True)) for one in (first, last))
    report = LearningReport(
        mission="refunds",
        run="20260214-101500-7f3a",
        model="scripted/1",
        status="finished",
        finished_at="2026-02-14T10:21:07Z",
        seed=7,
        splits=SplitSizes(
            train=PartSizes(passes=135, fails=285, clusters=210, hash="sha256:" + "1a" * 32),
            validation=PartSizes(passes=42, fails=98, clusters=71, hash="sha256:" + "2b" * 32),
            test=PartSizes(passes=48, fails=92, clusters=70, hash="sha256:" + "3c" * 32),
        ),
        before=before,
        after=after,
        comparison=mcnemar(wrong(first), wrong(last)),
        difference=paired_bootstrap(wrong(first), wrong(last), 1000, 7),
        guidance_before=0,
        guidance_after=5,
        baselines=tuple(
            Baseline(
                name=name,
                measures=measure(zip(LABELS, verdicts, strict=True)),
                against=mcnemar(wrong(verdicts), wrong(last)),
            )
            for name, verdicts in (("majority", common), ("word_counts", words))
        ),
        prevalence=Prevalence(
            tickets=560, judged_pass=201, corrected=corrected_prevalence(201, 560, after.tpr, after.tnr)
        ),
        epochs=(
            EpochRow(
                number=1,
                train_accuracy=0.69,
                validation_before=0.7,
                validation_after=0.76,
                accepted=2,
                refused=5,
                calls=1420,
            ),
            EpochRow(
                number=2,
                train_accuracy=0.77,
                validation_before=0.76,
                validation_after=0.81,
                accepted=2,
                refused=3,
                calls=1388,
            ),
            EpochRow(
                number=3,
                train_accuracy=0.82,
                validation_before=0.81,
                validation_after=0.83,
                accepted=1,
                refused=6,
                calls=1391,
            ),
            EpochRow(
                number=4,
                train_accuracy=0.84,
                validation_before=0.83,
                validation_after=0.83,
                accepted=0,
                refused=4,
                calls=1377,
            ),
        ),
        rules=(
            RuleRow(key="S1", text="When the text has under 5 words, the verdict is fail."),
            RuleRow(
                key="G0",
                text="Pass work that does what was asked, and nothing else.",
                measured_on=200,
                hits=3,
                misses=3,
                confidence=0.5,
            ),
            RuleRow(
                key="G1",
                text="If the refund was promised and no refund call follows, the verdict is fail.",
                evidence=tuple(f"RF-{n}::fail" for n in range(11, 20)),
                rationale="Nine failed tickets promise a refund that never comes.",
                hits=19,
                misses=2,
                confidence=0.87,
                measured_on=200,
            ),
            RuleRow(
                key="G2",
                text="如果订单号与客户所述不符，则判定不通过。",
                evidence=("RF-31::fail", "RF-40::fail"),
                hits=6,
                misses=1,
                confidence=0.78,
                measured_on=200,
            ),
            RuleRow(
                key="G4",
                text="A polite closing alone is a pass.",
                evidence=("RF-2::pass",),
                hits=1,
                misses=4,
                confidence=0.29,
                measured_on=200,
            ),
            RuleRow(
                key="G10",
                text="If the agent names the policy that it applies, the verdict is pass.",
                evidence=("RF-3::pass",),
            ),
        ),
        removed=(RemovedRow(key="G3", text="Long transcripts fail.", why="confidence 0.25 after 6 misses", epoch=3),),
        hypotheses=(
            HypothesisRow(
                text="If a second agent takes over, the verdict is fail.",
                falsifier="A ticket with a handover that people passed.",
                state="waiting",
                cycles=1,
                evidence=("RF-51::fail", "RF-52::fail", "RF-57::fail", "RF-58::fail"),
                dimension="handover",
                why="1 more cycle and 2 more tickets",
            ),
            HypothesisRow(
                text="If the agent names the policy that it applies, the verdict is pass.",
                falsifier="A failed ticket that quotes a policy.",
                state="promoted",
                cycles=2,
                evidence=tuple(f"RF-{n}::pass" for n in range(60, 67)),
                became="G10",
            ),
            HypothesisRow(
                text="Tickets in capitals fail.",
                falsifier="A passed ticket in capitals.",
                state="refused",
                cycles=3,
                evidence=("RF-70::fail",),
                why="the trial: error 29 → 31",
            ),
        ),
        trials=(
            TrialRow(
                change="add",
                text="If the refund was promised and no refund call follows, the verdict is fail.",
                accepted=True,
                tickets=140,
                errors_before=42,
                errors_after=34,
                false_releases_before=25,
                false_releases_after=17,
                share_lower=0.99,
                epoch=1,
            ),
            TrialRow(
                change="update G4",
                text="Tickets in capitals fail.",
                accepted=False,
                tickets=140,
                errors_before=29,
                errors_after=31,
                false_releases_before=14,
                false_releases_after=14,
                share_lower=0.12,
                why="more_errors",
                epoch=3,
            ),
        ),
        dropped=(
            DroppedRow(reason="third_state", count=4, examples=("…then it needs review.",)),
            DroppedRow(reason="not_json", count=11, examples=("Sure! Here is the JSON", "{'op': 'add'}")),
        ),
        queue=(
            QueueRow(
                ticket_key="RF-81::pass",
                reason_code="suspected_label_noise",
                label="pass",
                verdict="fail",
                note="three of three votes say fail in every epoch",
                epoch=2,
            ),
            QueueRow(
                ticket_key="RF-90::fail",
                reason_code="policy_question",
                label="fail",
                verdict="pass",
                note="RF-91 is alike and labelled pass",
                epoch=2,
            ),
            *(
                QueueRow(
                    ticket_key=f"RF-{n}::fail",
                    reason_code="reflection_no_evidence_after_gt",
                    label="fail",
                    verdict="pass",
                    epoch=1,
                )
                for n in range(100, 170)
            ),
            QueueRow(ticket_key="RF-99::pass", reason_code="budget_exhausted", label="pass", epoch=4),
        ),
        votes=5380,
        malformed={"no_reason_line": 21, "cut_off": 3},
        cost=Cost(
            rollout_calls=5380,
            reflection_calls=196,
            reused=12,
            errors=1,
            prompt_tokens=4_812_233,
            completion_tokens=163_002,
            cached_tokens=3_900_120,
            cost=3.4182,
            seconds=1893.2,
            budget=BudgetRow(calls=8000, cost=5.0),
        ),
    )
    return msgspec.structs.replace(report, **changes)


def an_audit(**changes: Any) -> LearningReport:
    """Judging only."""
    verdicts = judged(0.6, 0.75, 1)
    words = judged(0.65, 0.85, 3)
    report = LearningReport(
        mission="refunds",
        run="audit-20260214-101500",
        model="scripted/1",
        status="audit",
        finished_at="2026-02-14T10:21:07Z",
        seed=7,
        splits=SplitSizes(test=PartSizes(passes=48, fails=92, clusters=140, hash="sha256:" + "3c" * 32)),
        before=measure(zip(LABELS, verdicts, strict=True)),
        baselines=tuple(
            Baseline(
                name=name,
                measures=measure(zip(LABELS, found, strict=True)),
                against=mcnemar(wrong(found), wrong(verdicts)),
            )
            for name, found in (("majority", ["fail"] * len(LABELS)), ("word_counts", words))
        ),
        rules=(
            RuleRow(key="S1", text="When the text has under 5 words, the verdict is fail."),
            RuleRow(key="G0", text="Pass good work."),
        ),
        votes=420,
        cost=Cost(rollout_calls=420, prompt_tokens=90_000, completion_tokens=8_000, seconds=31.0),
    )
    return msgspec.structs.replace(report, **changes)


def an_empty_one() -> LearningReport:
    """A run that had nothing to measure by."""
    return LearningReport(
        mission="refunds",
        run="r1",
        model="scripted/1",
        status="interrupted",
        finished_at="2026-02-14T10:21:07Z",
        seed=7,
        splits=SplitSizes(),
        before=measure([]),
    )
