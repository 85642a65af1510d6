"""A learning run: epochs of judging, reflection and trials, recorded as events.

A run can be interrupted anywhere. To resume, the same code starts from the beginning: recorded steps are taken from
the event log, and the others are executed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from donewhen.judging.guidance import Guidance
from donewhen.judging.judge import Judge, calls_per_ticket
from donewhen.judging.mission import Mission
from donewhen.learning.measuring.splits import Splits
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.measuring.trial import LabelledVerdict
from donewhen.learning.measuring.validation import ValidationPanel
from donewhen.learning.reflection.closure import mix_labels, split_batches
from donewhen.learning.running.changes import GuidanceChanges
from donewhen.learning.running.cycle import ReflectionCycles, ReflectionLimitReached
from donewhen.learning.running.epoch_verdicts import EpochVerdicts
from donewhen.learning.running.event_content import TicketsRolled
from donewhen.learning.running.events import EventLog, RunError
from donewhen.learning.running.recorder import BudgetStop, RunRecorder, Watcher
from donewhen.learning.running.run_state import RunState
from donewhen.learning.running.unlearned_queue import UnlearnedQueue
from donewhen.models.metered import BudgetError, MeteredModel

_CHUNK = 64
_QUIET_EPOCHS = 2


class Learner:
    """One learning run, new or resumed."""

    def __init__(
        self,
        mission: Mission,
        reader: TicketReader,
        splits: Splits,
        metered: MeteredModel,
        log: EventLog,
        manifest: Mapping[str, Any],
        watcher: Watcher | None = None,
    ) -> None:
        self._mission = mission
        self._settings = mission.settings
        self._reader = reader
        self._splits = splits
        self._metered = metered
        self._manifest = manifest
        self._recorder = RunRecorder(log, metered, mission.clock, watcher)
        self._panel = ValidationPanel(mission, reader, splits, metered)
        self._changes = GuidanceChanges(mission.settings, self._recorder, self._panel)
        self._queue = UnlearnedQueue(mission, reader, splits, self._recorder)

    @property
    def state(self) -> RunState:
        """The current state of the run."""
        return self._recorder.state

    async def run(self) -> RunState:
        """Run until nothing more can be learned, or the budget is used up."""
        self._recorder.record("run_started", self._manifest)
        first = self.state.guidance
        # Reserve calls to judge the test tickets at the end.
        self._metered.meter.reserved = len(self._splits.test) * calls_per_ticket(self._mission, self._metered)
        with suppress(BudgetStop):
            await self._evaluate("before", first)
            quiet = 0
            for number in range(1, self._settings.epochs + 1):
                changes = await self._run_epoch(number)
                if not self.state.epoch.selected:
                    # The epoch's budget did not suffice to judge all tickets; the next epoch continues.
                    continue
                quiet = 0 if changes or self._has_new_support(number) else quiet + 1
                if quiet == _QUIET_EPOCHS or not self.state.epoch.candidates:
                    break
        self._metered.meter.reserved = 0
        self._metered.meter.end_epoch()
        self._queue.queue_for_people()
        if self.state.evaluations.get("before"):
            with suppress(BudgetStop):
                await self._evaluate("after", first)
        with suppress(BudgetStop):
            await self._assess(first)
        self._recorder.record(
            "run_finished",
            {"status": self._status(), "step": self.state.guidance.step, "hash": self.state.guidance.hash},
        )
        return self.state

    def _has_new_support(self, epoch: int) -> bool:
        """Whether a hypothesis gained support in an epoch, and needs further cycles."""
        required = self._settings.reflection.hypothesis_min_support_cycles
        return any(
            len(hypothesis.cycles) < required and hypothesis.cycles[-1].partition(".")[0] == str(epoch)
            for hypothesis in self.state.pool.values()
        )

    def _status(self) -> str:
        if self.state.unusable_answers and not self.state.usable_answers:
            return "no_usable_reflection"
        return "finished" if self.state.status == "running" else self.state.status

    async def _run_epoch(self, number: int) -> int:
        """Judge all training tickets under one guidance, and learn from the gradient candidates."""
        self._metered.meter.begin_epoch()
        self._recorder.record("epoch_started", {"epoch": number, "step": self.state.guidance.step})
        frozen = self.state.guidance
        # A dict instead of a set, to keep the order.
        open_cases: dict[str, None] = {}
        with EpochVerdicts(self._splits.train, self._settings.seed) as rolled:
            try:
                await self._roll(frozen, rolled)
                order = self._select(number, rolled)
                open_cases |= dict.fromkeys(order)
                await self._reflect(number, order, rolled, open_cases)
                await self._changes.clean_up(number)
            except ReflectionLimitReached:
                self._queue_open_cases(open_cases, rolled, "no further question of reflection is allowed in this epoch")
                with self._continue_if_epoch_budget():
                    await self._changes.clean_up(number)
            except BudgetStop as stopped:
                self._queue_open_cases(open_cases, rolled, "the budget was used up")
                with self._continue_if_epoch_budget():
                    raise stopped
        with self._continue_if_epoch_budget():
            await self._recorder.step("epoch_ended", partial(self._epoch_summary, number, frozen))
            if self._panel.validation:
                self._panel.note_validated(frozen, self.state.guidance)
        return self.state.epoch.changes

    @contextmanager
    def _continue_if_epoch_budget(self) -> Iterator[None]:
        """Suppress BudgetStop if only the epoch's budget is used up."""
        try:
            yield
        except BudgetStop as stopped:
            # A partial judgement is not recorded, so it must not be used.
            self._panel.forget()
            if stopped.whole_run:
                raise

    def _queue_open_cases(self, open_cases: Iterable[str], rolled: EpochVerdicts, why: str) -> None:
        self._queue.put({key: rolled[key] for key in open_cases}, "budget_exhausted", "", "", why)

    async def _roll(self, guidance: Guidance, rolled: EpochVerdicts) -> None:
        keys = self._splits.train
        watcher = self._recorder.watcher
        watcher.phase(f"epoch {self.state.epoch.number}: judging", len(keys))
        judge = Judge(self._mission, guidance, self._metered, reasons=self._metered.reads_reasons)
        # Larger than the concurrency, because at the end of each chunk fewer tickets are judged in parallel.
        for chunk in split_batches(keys, max(_CHUNK, 4 * self._settings.concurrency)):
            event = await self._recorder.step("rolled", partial(self._judge_chunk, judge, chunk))
            rolled.take(event.data["rows"])
            watcher.advance(rolled.count)
            if event.read_as(TicketsRolled).cut:
                # This step fails because the budget is used up, and records that.
                await self._recorder.step("rolled", self._raise_out_of_budget)

    async def _judge_chunk(self, judge: Judge, keys: Sequence[str]) -> dict[str, Any]:
        rows: list[dict[str, Any]] = []
        stream = judge.stream(self._reader.tickets(keys))
        try:
            async for verdict in stream:
                rows.append(verdict.as_dict())  # noqa: PERF401 - keeps the verdicts from before the budget ended
        except BudgetError:
            if not rows:
                raise
        finally:
            await stream.aclose()
        return {"epoch": self.state.epoch.number, "rows": rows, "cut": len(rows) < len(keys)}

    async def _raise_out_of_budget(self) -> dict[str, Any]:
        self._metered.meter.admit("rollout")
        raise RunError("Some tickets were not judged, although the budget is not used up.")

    def _select(self, number: int, rolled: EpochVerdicts) -> tuple[str, ...]:
        signals = rolled.candidates
        shuffled = sorted(signals)
        random.Random(f"{self._settings.seed} {number}").shuffle(shuffled)
        passes = [key for key in shuffled if key.endswith("::pass")]
        order = mix_labels(passes, [key for key in shuffled if not key.endswith("::pass")])
        lines = [{"ticket_key": key, "signals": list(signals[key])} for key in order]
        self._recorder.record("selected", {"epoch": number, "candidates": lines})
        return order

    async def _reflect(
        self, epoch: int, order: Sequence[str], rolled: EpochVerdicts, open_cases: dict[str, None]
    ) -> None:
        watcher = self._recorder.watcher
        watcher.phase(f"epoch {epoch}: reflecting", len(order))
        cycles = ReflectionCycles(
            self._mission, self._reader, self._metered, self._recorder, self._changes, self._queue, rolled, open_cases
        )
        for number, keys in enumerate(split_batches(order, self._settings.reflection.batch_size), 1):
            try:
                await cycles.reflect(f"{epoch}.{number}", keys)
            except ReflectionLimitReached:
                # Hypotheses with enough support by then are still promoted.
                await cycles.promote(f"{epoch}.{number}")
                raise
            await cycles.promote(f"{epoch}.{number}")
            watcher.advance(len(order) - len(open_cases))

    async def _epoch_summary(self, number: int, frozen: Guidance) -> dict[str, Any]:
        before = after = None
        if self._panel.validation:
            before = _accuracy(await self._panel.on_validation(frozen))
            after = _accuracy(await self._panel.on_validation(self.state.guidance))
        epoch = self.state.epoch
        return {
            "epoch": number,
            "train_accuracy": None if not epoch.rolled else round(1 - epoch.wrong / epoch.rolled, 6),
            "validation_before": before,
            "validation_after": after,
            "step": self.state.guidance.step,
            "changes": epoch.changes,
            "calls": self._metered.meter.calls - epoch.calls_before,
        }

    async def _assess(self, first: Guidance) -> None:
        """Record how the learned guidance judges the validation tickets, and how the guidance before it did."""
        if self.state.changes and self._panel.validation:
            await self._recorder.step("assessed", partial(self._compare_on_validation, first))
            self._panel.note_validated(first, self.state.guidance)

    async def _compare_on_validation(self, first: Guidance) -> dict[str, Any]:
        before = await self._panel.on_validation(first)
        after = await self._panel.on_validation(self.state.guidance)
        rows = [
            [key, before[key].label, before[key].verdict, after[key].verdict, after[key].score]
            for key in sorted(before)
        ]
        return {"rows": rows}

    async def _evaluate(self, when: str, first: Guidance) -> None:
        if self._splits.test:
            await self._recorder.step("evaluated", partial(self._judge_test_tickets, when, first))

    async def _judge_test_tickets(self, when: str, first: Guidance) -> dict[str, Any]:
        guidance = self.state.guidance
        before = self.state.evaluations.get("before")
        data = {"when": when, "step": guidance.step, "prompt": self._mission.language.hashes["rollout"]}
        if before is not None and guidance.hash == first.hash:
            # The guidance did not change, so the verdicts are the same.
            return {**data, "rows": before}
        self._recorder.watcher.phase(f"held-out tickets, {when}", len(self._splits.test))
        rows: list[list[Any]] = []
        judge = Judge(self._mission, guidance, self._metered, reasons=self._metered.reads_reasons)
        stream = judge.stream(self._reader.tickets(self._splits.test))
        try:
            async for verdict in stream:
                rows.append([verdict.ticket_key, verdict.label, verdict.verdict, verdict.signals.vote_strength])
                self._recorder.watcher.advance(len(rows))
        finally:
            await stream.aclose()
        return {**data, "rows": rows}


def _accuracy(judged: Mapping[str, LabelledVerdict]) -> float:
    return round(sum(not verdict.wrong for verdict in judged.values()) / len(judged), 6)
