"""The same scenes with the adapter for the Claude Agent SDK: there the record is the report of the run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from donewhen.adapters.agent_client import ClientRoom
from donewhen.adapters.claude_agent_sdk import ClaudeAgentSDKAdapter, ClaudeAgentSDKClientConfig
from donewhen.adapters.claude_code.client import ClaudeCodeClient
from donewhen.adapters.scripted import ToolCall
from donewhen.completion import FileExistsChecker, GuardPolicy
from donewhen.filesystem import HostFilesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate
from donewhen.protocols import TaskCompletionChecker, TaskCompletionContext, TaskCompletionResult
from donewhen.runtime import Budget, Deadline, Session, TokenUsage
from donewhen.testing import MessagesServer
from donewhen.testing.messages_api import MessagesRequest, Reply
from tools.runtime_scenes.cell import Cell

NAME = "sdk"
TITLE = "Claude Agent SDK"
_MISSING = "out.txt"
_DONE = Reply("Done!")
_WRITE = Reply(tools=(ToolCall("Bash", {"command": "echo work > out.txt", "description": "x"}),))
_LOOP = Reply(tools=(ToolCall("Bash", {"command": "true", "description": "x"}),), usage=TokenUsage(100_000, 1_000))
Model = Callable[[MessagesRequest], Reply]


@dataclass
class Answer:
    """A structured output."""

    n: int


class _Raising:
    """A checker that fails with an error until the agent has been asked again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        if (self._folder / _MISSING).exists():
            return TaskCompletionResult.ok()
        raise RuntimeError("The checker is broken.")


class _Hanging(_Raising):
    """A checker that does not end until the agent has done the work."""

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        if not (self._folder / _MISSING).exists():
            threading.Event().wait(600)
        return TaskCompletionResult.ok()


class _Stage:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "project"
        for new in (self.home, self.root):
            new.mkdir(parents=True)

    def play(
        self,
        model: Model,
        *,
        checker: TaskCompletionChecker | None = None,
        deadline: Deadline | None = None,
        budget: Budget | None = None,
        output: type[Any] | None = None,
        **config: Any,
    ) -> Cell:
        """Run the adapter once; the result says whether the model was asked again, and what the report says."""
        with MessagesServer(model) as server:
            room = ClientRoom(self.home, self.root, server.root_url, {"PATH": os.environ["PATH"]})
            adapter = ClaudeAgentSDKAdapter(
                client_config=ClaudeAgentSDKClientConfig(
                    task_completion_checker=checker or FileExistsChecker((_MISSING,), strict=True),
                    env=ClaudeCodeClient().start("claude", room, "").environment,
                    **{"tools": ("Bash", "Agent"), "allowed_tools": ("Bash", "Agent"), **config},
                ),
                filesystem=HostFilesystem(self.root),
            )
            sections = [MarkdownSection(title="Work", key="work", template="Write out.txt.")]
            template: PromptTemplate[Any] = (PromptTemplate if output is None else PromptTemplate[output])(  # type: ignore[valid-type]
                ns="scenes", key="work", sections=sections
            )
            try:
                response = adapter.evaluate(Prompt(template), session=Session(), deadline=deadline, budget=budget)
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - what leaves the adapter is the result
                return Cell("can't", f"{type(error).__name__} leaves evaluate(), and there is no report")
            stops = [request for request in server.calls() if request.kind == "main"]
        held = len([request for request in stops if _was_refused(request)])
        report = response.completion
        if report is not None and not report.verified:
            return Cell("held, recorded" if held else "recorded")
        return Cell("held") if held else Cell("can't", "the model was not asked again, and the report is verified")


def _was_refused(request: MessagesRequest) -> bool:
    said = [*request.last_user_texts, *(result.text for result in request.tool_results if result.is_error)]
    return any(
        word in text
        for text in said
        for word in ("Missing required files", "check_error", "check_timeout", "gate_error")
    )


def _turns(*replies: Reply, then: Reply = _DONE) -> Model:
    left = list(replies)
    return lambda request: left.pop(0) if left else then


def play(scene: str, folder: Path) -> Cell:
    """Play one scene with the SDK's own client."""
    stage = _Stage(folder)
    match scene:
        case "early stop":
            return stage.play(_turns(_DONE, _WRITE))
        case "structured output":
            answer = Reply(tools=(ToolCall("StructuredOutput", {"n": 1}),))
            return stage.play(_turns(answer, _WRITE, then=answer), output=Answer)
        case "sub-agent":
            return Cell("can't", "sub-agents are not checked: the parent's stop is")
        case "own cap":
            return stage.play(_turns())
        case "own cap, with tools":
            spoken = iter(range(1000))
            return stage.play(lambda request: _LOOP if next(spoken) % 2 else _DONE)
        case "client's cap":
            return stage.play(_turns(), guard_policy=GuardPolicy(max_stalled=10))
        case "max turns":
            return stage.play(_turns(then=_LOOP), max_turns=2)
        case "deadline":
            return stage.play(_turns(then=Reply("late", delay=60)), deadline=Deadline.after(3))
        case "budget":
            return stage.play(_turns(then=_LOOP), budget=Budget(max_cost_usd=0.5))
        case "API error":
            return stage.play(_turns(then=Reply("No.", status=400)))
        case "interrupt":
            with _interrupted_after(4.0):
                return stage.play(_turns(then=Reply("late", delay=60)))
        case "raising check":
            return stage.play(_turns(_DONE, _WRITE), checker=_Raising(stage.root))
        case "hanging check":
            policy = GuardPolicy(check_timeout=1)
            return stage.play(_turns(_DONE, _WRITE), checker=_Hanging(stage.root), guard_policy=policy)
        case "resume":
            stage.play(_turns(_LOOP, then=Reply("No.", status=400)))
            return stage.play(_turns(_DONE, _WRITE), options={"continue_conversation": True})
        case "sub-folder":
            (stage.root / "src").mkdir()
            write = Reply(tools=(ToolCall("Bash", {"command": "echo work > ../out.txt", "description": "x"}),))
            return stage.play(_turns(_DONE, write), cwd=stage.root / "src")
    return Cell("can't", "the adapter is a part of your program: without donewhen, it does not start")


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
