"""An agent of a user's own, with middleware: a loop around a model, tools, background work, sub-agents and streaming.

It knows donewhen only through ``GuardMiddleware``. Each fault is a mistake that such an agent really can have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from donewhen.adapters.scripted import ModelError, ToolCall, Turn
from donewhen.completion import StopGuard
from donewhen.filesystem import Filesystem
from donewhen.protocols import CompletionReport, StopReason
from donewhen.testing import BackgroundCall, Scene, SubagentCall

Fault = Literal[
    "trusts the accepted output",
    "makes the calls in any order",
    "leaves background work behind",
    "checks before background work ends",
    "guards sub-agents",
    "forgets the guard after a sub-agent",
    "streams past the guard",
    "streams past denied outputs",
    "ignores errors in streams",
    "lets go at once",
    "accepts every output",
]


class Middleware(Protocol):
    """What the agent asks. Each method returns a message that the agent has to answer first, or None."""

    def wants_to_stop(self, text: str) -> str | None: ...
    def gives_output(self, output: object) -> str | None: ...


class GuardMiddleware:
    """Guards the agent: about 30 lines, as a user would write them."""

    def __init__(self, guard: StopGuard, scene: Scene, filesystem: Filesystem) -> None:
        self._guard = guard
        self._scene = scene
        self._filesystem = filesystem
        self.report: CompletionReport | None = None

    def wants_to_stop(self, text: str) -> str | None:
        return self._ask(text, "end_turn")

    def gives_output(self, output: object) -> str | None:
        return self._ask(output, "structured_output")

    def ended(self, output: object, reason: StopReason) -> None:
        """The run has ended in another way, or more has happened since the last answer."""
        self.report = self._guard.conclude(self._scene.context(output, reason, self._filesystem))

    def _ask(self, output: object, reason: StopReason) -> str | None:
        decision = self._guard.decide(self._scene.context(output, reason, self._filesystem))
        self.report = decision.report if decision.allow else None
        return None if decision.allow else decision.feedback


class Agent:
    """The user's agent. ``run`` and ``stream`` do the same."""

    def __init__(
        self,
        model: Callable[[str], Turn],
        call: Callable[[ToolCall], str],
        middleware: GuardMiddleware | None,
        *,
        decode: Callable[[ToolCall], object],
        subagent: Callable[[SubagentCall, GuardMiddleware | None], None],
        max_turns: int | None = None,
        wants_output: bool = False,
        faults: frozenset[Fault] = frozenset(),
    ) -> None:
        self._model = model
        self._call = call
        self._middleware = middleware
        self._decode = decode
        self._subagent = subagent
        self._max_turns = max_turns or 100
        self._wants_output = wants_output
        self._faults = faults
        self._background: list[threading.Thread] = []
        self._changed = False
        self._streamed = False
        self.text = ""
        self.output: object = None
        self.reason: StopReason = "max_turns"

    def run(self, task: str) -> None:
        for _ in self._turns(task):
            pass

    def stream(self, task: str) -> Iterator[str]:
        self._streamed = True
        yield from self._turns(task)

    def _turns(self, task: str) -> Iterator[str]:
        received = task
        for _ in range(self._max_turns):
            try:
                turn = self._model(received)
            except ModelError:
                self.reason = "error"
                break
            yield from turn.text.split()
            self.text = turn.text or self.text
            answer = self._calls(turn) if turn.calls else self._stops(turn)
            if answer is None:
                break
            received = answer
        self._conclude()

    def _calls(self, turn: Turn) -> str | None:
        made = list(turn.calls)
        if "makes the calls in any order" in self._faults:
            made.reverse()
        answers = []
        for call in made:
            if call.gives_output:
                answers.append(self._gives_output(call))
            else:
                answers.append(self._one_call(call))
                self._changed = True
        return "\n".join(answers) if self.output is None else None

    def _one_call(self, call: ToolCall) -> str:
        if isinstance(call, BackgroundCall):
            thread = threading.Timer(call.seconds, lambda: [self._call(each) for each in call.calls()])
            thread.start()
            self._background.append(thread)
            return "Started."
        if isinstance(call, SubagentCall):
            self._subagent(call, self._middleware if "guards sub-agents" in self._faults else None)
            if "forgets the guard after a sub-agent" in self._faults:
                self._middleware = None
            return "The sub-agent has ended."
        return self._call(call)

    def _gives_output(self, call: ToolCall) -> str:
        try:
            output = self._decode(call)
        except ValueError as error:
            return f"The output is invalid: {error}"
        careless = "accepts every output" in self._faults or (
            self._streamed and "streams past denied outputs" in self._faults
        )
        self._changed = False
        feedback = self._middleware.gives_output(dict(call.arguments)) if self._middleware and not careless else None
        if feedback is not None:
            return feedback
        self.output = output
        self.reason = "structured_output"
        return "Accepted."

    def _stops(self, turn: Turn) -> str | None:
        if "checks before background work ends" not in self._faults:
            self._wait()
        lets_go = "lets go at once" in self._faults or (self._streamed and "streams past the guard" in self._faults)
        self._changed = False
        feedback = self._middleware.wants_to_stop(turn.text) if self._middleware and not lets_go else None
        if feedback is not None:
            return feedback
        if self._wants_output and not (
            self._middleware and self._middleware.report and not self._middleware.report.verified
        ):
            return "Please give the result."
        self.reason = "end_turn"
        return None

    def _wait(self) -> None:
        if "leaves background work behind" in self._faults:
            return
        for thread in self._background:
            thread.join()
            self._changed = True
        self._background.clear()

    def _conclude(self) -> None:
        self._wait()
        if self._middleware is None:
            return
        report = self._middleware.report
        if self.reason == "error" and self._streamed and "ignores errors in streams" in self._faults:
            return
        trusts = "trusts the accepted output" in self._faults and self.output is not None
        trusts = trusts or ("checks before background work ends" in self._faults and report is not None)
        if report is None or (report.verified and self._changed and not trusts):
            self._middleware.ended(self.output or self.text, self.reason)
