"""Fill the stop-gradient queue: tickets that nothing was learned from, and tickets that need a human decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.foundation.binary import Binary
from donewhen.foundation.plain_text import one_line
from donewhen.judging.mission import Mission
from donewhen.judging.verdict import Verdict
from donewhen.learning.measuring.label_noise import policy_questions, suspected_label_noise
from donewhen.learning.measuring.near_duplicates import tickets_unlike_their_label
from donewhen.learning.measuring.splits import Splits
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.reflection.hypotheses import opposed_pairs
from donewhen.learning.reflection.unlearnable import QueuedTicket, ReasonCode
from donewhen.learning.running.recorder import RunRecorder


class UnlearnedQueue:
    """Writes rows of the stop-gradient queue."""

    def __init__(self, mission: Mission, reader: TicketReader, splits: Splits, recorder: RunRecorder) -> None:
        self._mission = mission
        self._reader = reader
        self._splits = splits
        self._recorder = recorder

    def put(self, verdicts: Mapping[str, Verdict], code: ReasonCode, cycle: str, reflection_id: str, note: str) -> None:
        """Queue judged tickets with the reason why nothing was learned from them."""
        rows = [
            self._row(key, verdict.verdict, verdict.reason, code, cycle, reflection_id, note)
            for key, verdict in verdicts.items()
        ]
        if rows:
            self._recorder.record("queued", {"rows": rows})

    def queue_for_people(self) -> None:
        """Queue the tickets that need a human decision."""
        state = self._recorder.state
        if not state.epochs:
            return
        train = set(self._splits.train)
        members = [member for member in self._reader.members if member.key in train]
        pairs = opposed_pairs(state.pool.values(), self._mission.language)
        questions = policy_questions(members, [(first.evidence, second.evidence) for first, second in pairs])
        mistakes = {key: seen for key, seen in state.mistakes.items() if key not in questions and self._is_skilled()}
        unlike = (
            tickets_unlike_their_label(self._reader, members, self._mission.settings.seed) if mistakes else frozenset()
        )
        noisy = dict.fromkeys(
            suspected_label_noise(mistakes, self._mission.settings.epochs, unlike),
            "every vote is against the label, and so are its words",
        )
        rows = [self._human_decision_row(key, "suspected_label_noise", note) for key, note in noisy.items()]
        rows += [self._human_decision_row(key, "policy_question", note) for key, note in questions.items()]
        if rows:
            self._recorder.record("queued", {"rows": rows})

    def _is_skilled(self) -> bool:
        """Whether the judge has more training tickets right than one that always says the same.

        What a judge without skill contradicts says nothing about the labels.
        """
        epoch = self._recorder.state.epoch
        fails = sum(key.endswith("::fail") for key in self._splits.train)
        return bool(epoch.rolled) and epoch.wrong < min(fails, len(self._splits.train) - fails)

    def _human_decision_row(self, key: str, code: ReasonCode, note: str) -> dict[str, Any]:
        verdict: Binary | None = None
        if key in self._recorder.state.mistakes:
            verdict = "fail" if key.endswith("::pass") else "pass"
        return self._row(key, verdict, "", code, "", "", note)

    def _row(
        self,
        key: str,
        verdict: Binary | None,
        reason: str,
        code: ReasonCode,
        cycle: str,
        reflection_id: str,
        note: str,
    ) -> dict[str, Any]:
        ticket = self._reader.ticket(key)
        assert ticket.label is not None  # noqa: S101 - only labelled tickets are in a split
        return QueuedTicket(
            key,
            ticket.group_id,
            ticket.mission,
            ticket.label,
            verdict,
            reason,
            code,
            self._recorder.state.epoch.number,
            cycle,
            reflection_id,
            one_line(note, 500),
        ).as_dict()
