"""Changing the guidance: through a trial, or not at all; and doing without rules that don't pay."""

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
from donewhen.learning.running.recorder import RunRecorder
from donewhen.learning.running.run_state import RunState


class GuidanceChanges:
    """The one way in which a run changes its guidance."""

    def __init__(self, settings: MissionFile, recorder: RunRecorder, panel: ValidationPanel) -> None:
        self._settings = settings
        self._recorder = recorder
        self._panel = panel

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    @property
    def left(self) -> int:
        """How many changes this epoch may still make."""
        return max(0, self._settings.reflection.max_changes_per_epoch - self._state.epoch.changes)

    async def make(self, change: GuidanceChange, origin: str) -> tuple[bool, str]:
        """Make a change, if it stands its trial; with the trial switched off, make it. And why, or why not."""
        now = self._state.guidance
        try:
            after = apply_change(now, change, now.updated_at)
        except GuidanceError as error:
            return False, error.message
        known = self._state.refused.get((now.hash, after.hash))
        if known is not None:
            # The same change of the same guidance, on the same tickets: it would come out the same.
            return False, known
        why = "no trial"
        if self._settings.trial != "off":
            data = await self._recorder.step("trialled", partial(self._trial, now, after, change, origin))
            if data["tickets"]:
                self._panel.was_on_validation(now, after)
            why = str(data["reason"])
            if not data["accepted"]:
                return False, why
        key = next_key(now) if change.op == "add" else change.key
        told = {"change": msgspec.to_builtins(change), "key": key, "step": after.step, "hash": after.hash}
        self._recorder.record("guidance_changed", {**told, "origin": origin})
        return True, why

    async def _trial(self, now: Guidance, after: Guidance, change: GuidanceChange, origin: str) -> dict[str, Any]:
        trial = self._settings.trial
        assert trial != "off"  # noqa: S101 - asked before
        judged: tuple[dict[str, LabelledVerdict], dict[str, LabelledVerdict]] = {}, {}
        if len(self._panel.validation) >= trial.min_tickets:
            judged = await self._panel.on_validation(now), await self._panel.on_validation(after)
        seed = int(digest_of([self._settings.seed, msgspec.to_builtins(change)])[7:15], 16)
        result = run_trial(change.op, *judged, trial, seed)
        told = {"change": msgspec.to_builtins(change), "origin": origin, "epoch": self._state.epoch.number}
        return {**told, "step": now.step, "before": now.hash, "after": after.hash, **result.as_dict()}

    async def clean_up(self, epoch: int) -> None:
        """Measure what each rule does, and try to do without those that don't pay."""
        rules = self._settings.rules
        if len(self._state.guidance.learned) < 2 or not self._panel.credit:
            return
        now = self._state.guidance
        data = await self._recorder.step("credited", partial(self._credit, epoch))
        self._panel.was_on_credit(now, *(now.without(key) for key in data["rules"]))
        found = {key: RuleCredit(tuple(one["hits"]), tuple(one["misses"])) for key, one in data["rules"].items()}
        for key in rules_not_paying(self._state.guidance, found, rules):
            if not self.left:
                return
            message = f"{len(found[key].hits)} hits and {len(found[key].misses)} misses when it is left out"
            change = GuidanceChange(
                op="delete", key=key, rationale=message, evidence=found[key].misses, reflection_id=f"{epoch}.clean-up"
            )
            await self.make(change, "clean-up")

    async def _credit(self, epoch: int) -> dict[str, Any]:
        now = self._state.guidance
        names = [key for key in now.learned if key != FIRST]
        advance = self._phase(f"epoch {epoch}: leaving out each rule", len(names))
        base = await self._panel.on_credit(now)
        found: dict[str, Any] = {}
        for key in names:
            credit = rule_credit(base, await self._panel.on_credit(now.without(key)))
            found[key] = {"hits": list(credit.hits), "misses": list(credit.misses)}
            advance(len(found))
        return {"epoch": epoch, "tickets": len(base), "rules": found}

    def _phase(self, name: str, total: int) -> Callable[[int], None]:
        self._recorder.watcher.phase(name, total)
        return self._recorder.watcher.advance
