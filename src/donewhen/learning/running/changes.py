"""Change the guidance of a run after a successful trial, and remove rules with negative effect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.judging.guidance import FIRST, Guidance, GuidanceChange, GuidanceError, apply_change, next_key
from donewhen.judging.mission_settings import MissionFile
from donewhen.learning.measuring.credit import RuleCredit, rule_credit, rules_not_paying
from donewhen.learning.measuring.trial import LabelledVerdict, run_trial
from donewhen.learning.measuring.validation import ValidationPanel
from donewhen.learning.running.event_content import ChangeTried, RulesCredited
from donewhen.learning.running.recorder import RunRecorder
from donewhen.learning.running.run_state import RunState


class GuidanceChanges:
    """Makes all changes of the guidance during a run."""

    def __init__(self, settings: MissionFile, recorder: RunRecorder, panel: ValidationPanel) -> None:
        self._settings = settings
        self._recorder = recorder
        self._panel = panel

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    @property
    def left(self) -> int:
        """Number of changes still allowed in this epoch."""
        return max(0, self._settings.reflection.max_changes_per_epoch - self._state.epoch.changes)

    async def make(self, change: GuidanceChange, origin: str) -> tuple[bool, str]:
        """Make a change if it passes its trial, or if trials are off. Return whether it was made, and the reason."""
        now = self._state.guidance
        try:
            after = apply_change(now, change, now.updated_at)
        except GuidanceError as error:
            return False, error.message
        known = self._state.refused.get((now.hash, after.hash))
        if known is not None:
            # The same change of the same guidance on the same tickets would give the same result.
            return False, known
        why = "no trial"
        if self._settings.trial != "off":
            event = await self._recorder.step("trialled", partial(self._run_trial, now, after, change, origin))
            trial = event.read_as(ChangeTried)
            if trial.tickets:
                self._panel.note_validated(now, after)
            why = trial.reason
            if not trial.accepted:
                return False, why
        key = next_key(now) if change.op == "add" else change.key
        data = {"change": msgspec.to_builtins(change), "key": key, "step": after.step, "hash": after.hash}
        self._recorder.record("guidance_changed", {**data, "origin": origin})
        return True, why

    async def _run_trial(self, now: Guidance, after: Guidance, change: GuidanceChange, origin: str) -> dict[str, Any]:
        trial = self._settings.trial
        assert trial != "off"  # noqa: S101 - checked by the caller
        judged: tuple[dict[str, LabelledVerdict], dict[str, LabelledVerdict]] = {}, {}
        if len(self._panel.validation) >= trial.min_tickets:
            judged = await self._panel.on_validation(now), await self._panel.on_validation(after)
        seed = int(digest_of([self._settings.seed, msgspec.to_builtins(change)])[7:15], 16)
        result = run_trial(change.op, *judged, trial, seed)
        data = {"change": msgspec.to_builtins(change), "origin": origin, "epoch": self._state.epoch.number}
        return {**data, "step": now.step, "before": now.hash, "after": after.hash, **result.as_dict()}

    async def clean_up(self, epoch: int) -> None:
        """Measure the effect of each rule, and try to delete rules that do more harm than good."""
        rules = self._settings.rules
        if len(self._state.guidance.learned) < 2 or not self._panel.credit:
            return
        now = self._state.guidance
        event = await self._recorder.step("credited", partial(self._measure_credit, epoch))
        credited = event.read_as(RulesCredited)
        self._panel.note_credited(now, *(now.without(key) for key in credited.rules))
        measured = {key: RuleCredit(tuple(row.hits), tuple(row.misses)) for key, row in credited.rules.items()}
        for key in rules_not_paying(self._state.guidance, measured, rules):
            if not self.left:
                return
            # The trial's seed depends on this text: another wording would give other resamples.
            message = f"{len(measured[key].hits)} hits and {len(measured[key].misses)} misses when it is left out"
            change = GuidanceChange(
                op="delete",
                key=key,
                rationale=message,
                evidence=measured[key].misses,
                reflection_id=f"{epoch}.clean-up",
            )
            await self.make(change, "clean-up")

    async def _measure_credit(self, epoch: int) -> dict[str, Any]:
        now = self._state.guidance
        keys = [key for key in now.learned if key != FIRST]
        advance = self._start_phase(f"epoch {epoch}: measuring each rule", len(keys))
        base = await self._panel.on_credit(now)
        rows: dict[str, Any] = {}
        for key in keys:
            credit = rule_credit(base, await self._panel.on_credit(now.without(key)))
            rows[key] = {"hits": list(credit.hits), "misses": list(credit.misses)}
            advance(len(rows))
        return {"epoch": epoch, "tickets": len(base), "rules": rows}

    def _start_phase(self, name: str, total: int) -> Callable[[int], None]:
        self._recorder.watcher.phase(name, total)
        return self._recorder.watcher.advance
