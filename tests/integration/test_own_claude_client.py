"""``hooks_for``: a program with its own client of the real Claude Agent SDK is guarded by hooks alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from claude_kit import bundled_cli, clean_environment

from donewhen.adapters.claude_agent_sdk import ClientHooks, hooks_for
from donewhen.completion import FileExistsChecker, GuardPolicy, TaskCompletionContext
from donewhen.filesystem import HostFilesystem
from donewhen.protocols import CompletionReport
from donewhen.runtime import CompletionBypassed, CompletionChecked, Deadline
from donewhen.testing import MessagesServer, ToolCall
from donewhen.testing.messages_api import MessagesRequest, Reply

pytestmark = pytest.mark.claude

FILES = FileExistsChecker(("out.txt",), strict=True)
MISSING = "Missing required files: out.txt"
SCHEMA = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}


@pytest.fixture(autouse=True, scope="module")
def _needs_the_client() -> None:
    bundled_cli()


def _bash(command: str, **more: object) -> Reply:
    return Reply(tools=(ToolCall("Bash", {"command": command, "description": "x", **more}),))


WRITE = _bash("echo work > out.txt")
GIVE = Reply(tools=(ToolCall("StructuredOutput", {"summary": "s"}),))


class Program:
    """A program of a user: it makes the options and reads the messages itself."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.asked = 0

    def hooks(self, checker: Any = FILES, **more: Any) -> ClientHooks:
        return hooks_for(checker, filesystem=HostFilesystem(self.project), **more)

    async def run(self, server: MessagesServer, hooks: ClientHooks, *prompts: str, **options: Any) -> CompletionReport:
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

        given = ClaudeAgentOptions(
            hooks=hooks,  # type: ignore[arg-type]
            env={**clean_environment(server.base_url, self.home), **hooks.env},
            cwd=self.project,
            tools=["Bash", "Agent"],
            allowed_tools=["Bash", "Agent"],
            setting_sources=[],
            **options,
        )
        async with ClaudeSDKClient(given) as client:
            for prompt in prompts or ("Write out.txt.",):
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass
        return await hooks.conclude()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_the_agent_of_ones_own_client_is_held_until_the_work_is_done(program: Program) -> None:
    hooks = program.hooks()
    with MessagesServer([Reply("done"), WRITE, Reply("really done")]) as server:
        report = asyncio.run(program.run(server, hooks))
    assert server.calls()[1].mentions(MISSING)
    assert report.status == "verified"
    checks = [(event.complete, event.allowed) for event in hooks.session[CompletionChecked].all()]
    assert checks == [(False, False), (True, True), (True, True)]


def test_its_structured_output_is_denied_until_the_work_is_done(program: Program) -> None:
    hooks = program.hooks()
    with MessagesServer([GIVE, WRITE, GIVE]) as server:
        report = asyncio.run(
            program.run(server, hooks, output_format={"type": "json_schema", "schema": SCHEMA}, max_turns=9)
        )
    (denied,) = server.calls()[1].tool_results
    assert denied.is_error
    assert MISSING in denied.text
    assert report.status == "verified"


def test_work_that_is_undone_after_the_agent_was_let_go_is_not_verified(program: Program) -> None:
    hooks = program.hooks()
    undo = ToolCall("Bash", {"command": "rm out.txt", "description": "x"})
    both = Reply(tools=(*GIVE.tools, undo))
    with MessagesServer(lambda request: WRITE if not request.tool_results else both) as server:
        report = asyncio.run(program.run(server, hooks, output_format={"type": "json_schema", "schema": SCHEMA}))
    assert report.status == "incomplete"
    assert hooks.report is report


def test_no_progress_is_capped_and_the_next_message_starts_a_new_count(program: Program) -> None:
    hooks = program.hooks(policy=GuardPolicy(max_stalled=9))
    with MessagesServer(lambda request: Reply("done")) as server:
        report = asyncio.run(program.run(server, hooks, "Write out.txt.", "Try again."))
    # More often than the client's own cap of 8 allows, and after each of the two messages.
    assert len(server.calls()) == 20
    assert report.status == "incomplete"


def test_an_end_without_a_hook_is_concluded(program: Program) -> None:
    hooks = program.hooks()
    with MessagesServer(lambda request: _bash("true")) as server:
        report = asyncio.run(program.run(server, hooks, max_turns=2))
    assert hooks.session[CompletionChecked].all()[0].allowed is True
    assert (report.status, len(hooks.session[CompletionChecked])) == ("incomplete", 1)


def test_a_sub_agent_is_not_held(program: Program) -> None:
    def model(request: MessagesRequest) -> Reply:
        if request.kind == "subagent":
            return Reply("sub done")
        spoken = sum(message["role"] == "assistant" for message in request.body["messages"])
        launch = {"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": False}
        return (Reply(tools=(ToolCall("Agent", launch),)), WRITE, Reply("done"))[spoken]

    with MessagesServer(model) as server:
        report = asyncio.run(program.run(server, program.hooks()))
    assert len(server.calls("subagent")) == 1
    assert not any(request.mentions(MISSING) for request in server.requests)
    assert report.status == "verified"


def test_a_checker_that_raises_holds_and_a_spent_deadline_lets_go_on_record(program: Program) -> None:
    def broken(context: TaskCompletionContext) -> bool:
        raise RuntimeError("no database")

    hooks = program.hooks(broken, policy=GuardPolicy(max_stalled=1))
    with MessagesServer(lambda request: Reply("done")) as server:
        report = asyncio.run(program.run(server, hooks))
    assert server.calls()[1].mentions("no database")
    assert report.status == "errored"
    late = program.hooks(deadline=Deadline.after(-1))
    with MessagesServer([Reply("done")]) as server:
        report = asyncio.run(program.run(server, late))
    assert report.status == "bypassed"
    assert len(late.session[CompletionBypassed]) == 2


@pytest.mark.parametrize("thing", [None, 7, FileExistsChecker])
def test_what_is_no_checker_is_refused_when_it_is_given(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a checker|pass an instance"):
        hooks_for(thing)
