"""What an epoch keeps of its verdicts: those that can teach something, and a sample."""

from __future__ import annotations

import tracemalloc

import pytest
from learning_kit import verdict_on

from donewhen.judging.verdict import Verdict
from donewhen.learning.running.epoch_verdicts import EpochVerdicts


def right(at: int) -> Verdict:
    return verdict_on(f"QC-{at}::pass", "pass", 3, 0)


def wrong(at: int) -> Verdict:
    return verdict_on(f"QC-{at}::fail", "pass", 3, 0)


def test_candidates_and_a_sample_are_found_again_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.learning.running.epoch_verdicts._SAMPLE_SIZE", 4)
    verdicts = [wrong(at) if at % 5 == 0 else right(at) for at in range(50)]
    keys = [verdict.ticket_key for verdict in verdicts]
    with EpochVerdicts(keys, 1) as rolled:
        rolled.take([verdict.as_dict() for verdict in verdicts[:20]])
        rolled.take([verdict.as_dict() for verdict in verdicts[20:]])
        assert rolled.count == 50
        assert list(rolled.candidates) == [f"QC-{at}::fail" for at in range(0, 50, 5)]
        assert rolled.candidates["QC-5::fail"] == ("label_mismatch", "conflict_flag")
        assert len(rolled.studied) == 4
        assert list(rolled.studied) == sorted(rolled.studied)
        for verdict in verdicts:
            if verdict.ticket_key in rolled.candidates or verdict.ticket_key in rolled.studied:
                assert rolled[verdict.ticket_key] == verdict._replace(answers=())
            else:
                with pytest.raises(KeyError):
                    rolled[verdict.ticket_key]


def test_the_sample_depends_on_the_seed_and_not_on_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.learning.running.epoch_verdicts._SAMPLE_SIZE", 4)
    keys = [f"QC-{at}::pass" for at in range(50)]
    assert EpochVerdicts(keys, 1).studied == EpochVerdicts(keys[::-1], 1).studied != EpochVerdicts(keys, 2).studied
    assert EpochVerdicts(keys[:4], 1).studied == tuple(sorted(keys[:4]))


def test_reasons_do_not_pile_up_in_memory() -> None:
    """Tickets that are all wrong, each with a reason of its own."""

    def peak(count: int) -> int:
        tracemalloc.reset_peak()
        with EpochVerdicts([f"QC-{at}::fail" for at in range(count)], 1) as rolled:
            for at in range(count):
                rolled.take([wrong(at)._replace(reason=f"{at:09}" * 200).as_dict()])
            assert rolled["QC-0::fail"].reason == "000000000" * 200
        return tracemalloc.get_traced_memory()[1]

    tracemalloc.start()
    try:
        peak(10)
        assert peak(4000) - peak(1500) < 2500 * 900
    finally:
        tracemalloc.stop()
