"""The adapter on the real Claude Agent SDK and its real CLI, with a scripted Messages API on loopback.

Every scenario asserts on what the server saw: another model turn, with the feedback in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import claude_agent_sdk
import pytest
from claude_kit import bundled_cli, clean_environment

from donewhen.adapters.claude_agent_sdk import ClaudeAgentSDKAdapter, ClaudeAgentSDKClientConfig
from donewhen.adapters.claude_agent_sdk.run import Run
from donewhen.completion import (
    CompositeChecker,
    FileExistsChecker,
    GuardPolicy,
    LLMJudgeChecker,
    PlanBasedChecker,
    StopGuard,
    TaskCompletionContext,
)
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan
from donewhen.filesystem import Filesystem, HostFilesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate
from donewhen.protocols import PromptResponse
from donewhen.runtime import Budget, CompletionChecked, Deadline, Limits, Session, TokenUsage
from donewhen.testing import (
    AdapterContract,
    BackgroundCall,
    MessagesServer,
    ModelError,
    Played,
    Scene,
    SubagentCall,
    ToolCall,
    Turn,
)
from donewhen.testing.contract import MISSING, Verdict
from donewhen.testing.messages_api import MessagesRequest, Reply
from sentences import assert_sentences

pytestmark = pytest.mark.claude

FILES = FileExistsChecker(("out.txt",), strict=True)
WRITE = Reply(tools=(ToolCall("Bash", {"command": "echo work > out.txt", "description": "write"}),))


@pytest.fixture(autouse=True, scope="module")
def _needs_the_client() -> None:
    bundled_cli()


def _told(request: MessagesRequest) -> str:
    return "\n".join([*request.last_user_texts, *(result.text for result in request.tool_results)])


def _reply(turn: Turn | ModelError) -> Reply:
    if isinstance(turn, ModelError):
        return Reply(str(turn), status=500)
    usage = turn.usage if turn.usage.total_tokens else TokenUsage(10, 5)
    return Reply(turn.text, tools=tuple(_own(call) for call in turn.calls), usage=usage)


def _own(call: ToolCall) -> ToolCall:
    """The call as this client knows it."""
    if call.gives_output:
        return ToolCall("StructuredOutput", call.arguments)
    if isinstance(call, BackgroundCall):
        return ToolCall("Bash", {"command": call.command(), "description": "x", "run_in_background": True})
    if isinstance(call, SubagentCall):
        task = {"description": "d", "prompt": call.arguments["task"], "subagent_type": "general-purpose"}
        return ToolCall("Agent", {**task, "run_in_background": False})
    return ToolCall(f"mcp__donewhen__{call.name}", call.arguments)


class _Model:
    """Follows a scene's turns, and those of its sub-agents."""

    def __init__(self, scene: Scene) -> None:
        self._turns = scene.turns
        self._number = 0
        self._subagent: Iterator[Turn] = iter(())

    def __call__(self, request: MessagesRequest) -> Reply:
        if request.kind == "subagent":
            return _reply(next(self._subagent))
        turn = self._turns(self._number) if callable(self._turns) else self._turns[self._number]
        self._number += 1
        if isinstance(turn, Turn):
            self._subagent = iter(
                [each for call in turn.calls if isinstance(call, SubagentCall) for each in call.turns]
            )
        return _reply(turn)


class TestClaudeAgentSDKAdapter(AdapterContract):
    """The contract, kept by the real client."""

    features = frozenset({"output", "parallel calls", "background work", "sub-agents", "streaming"})

    @pytest.fixture(autouse=True)
    def _workspace(self, tmp_path: Path) -> None:
        self._home = tmp_path / "home"
        project = tmp_path / "project"
        project.mkdir()
        self._filesystem = HostFilesystem(project)

    @property
    def filesystem(self) -> Filesystem:
        return self._filesystem

    def play(self, scene: Scene) -> Played:
        with MessagesServer(_Model(scene)) as server:
            config = ClaudeAgentSDKClientConfig(
                task_completion_checker=scene.checker,
                guard_policy=scene.policy,
                max_turns=scene.max_turns,
                tools=("Bash", "Agent"),
                allowed_tools=("Bash", "Agent"),
                env=clean_environment(server.base_url, self._home),
                options={"include_partial_messages": True} if scene.streamed else {},
            )
            adapter = ClaudeAgentSDKAdapter(client_config=config, filesystem=self._filesystem)
            response = adapter.evaluate(
                scene.prompt, session=scene.session, deadline=scene.deadline, budget=scene.budget
            )
            told = tuple(_told(request) for request in server.calls())
            return Played(response, told, tuple(_told(request) for request in server.calls("subagent")))


class Stage:
    """A project for the real client with its own tools."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.project.mkdir()
        self.session = Session()

    def play(
        self,
        server: MessagesServer,
        *,
        checker: object = FILES,
        template: PromptTemplate[None] | None = None,
        deadline: Deadline | None = None,
        budget: Budget | None = None,
        **config: object,
    ) -> PromptResponse[None]:
        adapter = self.adapter(server, checker, **config)
        return adapter.evaluate(Prompt(template or _work()), session=self.session, deadline=deadline, budget=budget)

    def adapter(self, server: MessagesServer, checker: object, **config: object) -> ClaudeAgentSDKAdapter:
        settings: dict[str, object] = {"tools": ("Bash", "Agent"), "allowed_tools": ("Bash", "Agent"), **config}
        return ClaudeAgentSDKAdapter(
            client_config=ClaudeAgentSDKClientConfig(
                task_completion_checker=checker,  # type: ignore[arg-type]
                env=clean_environment(server.base_url, self.home),
                **settings,  # type: ignore[arg-type]
            ),
            filesystem=HostFilesystem(self.project),
        )


def _work() -> PromptTemplate[None]:
    return PromptTemplate[None](
        ns="test", key="work", sections=[MarkdownSection(title="Work", key="work", template="Write out.txt.")]
    )


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_the_clients_own_tools_do_the_work_and_the_stop_is_held_until_then(stage: Stage) -> None:
    with MessagesServer([Reply("done"), WRITE, Reply("really done")]) as server:
        response = stage.play(server)
    second, third = server.calls()[1:]
    assert second.mentions(MISSING)
    assert third.tool_results[0].name == "Bash"
    assert response.completion is not None
    assert (response.completion.status, response.completion.attempts) == ("verified", 2)
    assert (stage.project / "out.txt").read_text() == "work\n"


def test_the_plan_is_enforced_through_in_process_tools(stage: Stage) -> None:
    template = PromptTemplate[None](ns="test", key="plan", sections=[PlanningToolsSection(session=stage.session)])
    setup = Reply(tools=(ToolCall("mcp__donewhen__planning_setup_plan", {"objective": "x", "steps": ["a", "b"]}),))
    done = [
        Reply(tools=(ToolCall("mcp__donewhen__planning_update_step", {"step_id": number, "status": "done"}),))
        for number in (1, 2)
    ]
    with MessagesServer([setup, Reply("done"), *done, Reply("done")]) as server:
        response = stage.play(server, checker=PlanBasedChecker(plan_type=Plan), template=template)
    assert "mcp__donewhen__planning_setup_plan" in server.calls()[0].tool_names
    assert server.calls()[2].mentions("You have 2 incomplete task(s) out of 2.")
    assert response.completion is not None
    assert response.completion.status == "verified"
    plan = stage.session[Plan].latest()
    assert plan is not None
    assert plan.status == "completed"


def test_a_sub_agent_is_not_held_to_its_parents_work(stage: Stage) -> None:
    def model(request: MessagesRequest) -> Reply:
        if request.kind == "subagent":
            return Reply("sub done")
        spoken = sum(one["role"] == "assistant" for one in request.body["messages"])
        launch = {"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": False}
        return (Reply(tools=(ToolCall("Agent", launch),)), WRITE, Reply("done"))[spoken]

    with MessagesServer(model) as server:
        response = stage.play(server)
    assert len(server.calls("subagent")) == 1
    assert response.completion is not None
    assert (response.completion.status, response.completion.attempts) == ("verified", 1)
    assert not any(request.mentions(MISSING) for request in server.requests)


def test_an_agent_with_a_task_in_the_background_is_judged_when_it_has_ended(stage: Stage) -> None:
    background = {"command": "sleep 1; echo work > out.txt", "description": "x", "run_in_background": True}

    def model(request: MessagesRequest) -> Reply:
        spoken = any(one["role"] == "assistant" for one in request.body["messages"])
        return Reply("done") if spoken else Reply(tools=(ToolCall("Bash", background),))

    with MessagesServer(model) as server:
        response = stage.play(server)
    assert response.completion is not None
    assert response.completion.status == "verified"
    assert not any(request.mentions(MISSING) for request in server.requests)


def test_a_task_in_the_background_that_never_ends_is_waited_for_only_so_long(stage: Stage) -> None:
    background = {"command": "sleep 600", "description": "x", "run_in_background": True}

    def model(request: MessagesRequest) -> Reply:
        spoken = any(one["role"] == "assistant" for one in request.body["messages"])
        return Reply("done") if spoken else Reply(tools=(ToolCall("Bash", background),))

    with MessagesServer(model) as server:
        response = stage.play(server, background_wait=1.0)
    assert response.completion is not None
    assert response.completion.status == "incomplete"


def test_a_deadline_ends_a_run_in_the_middle_of_a_model_call(stage: Stage) -> None:
    with MessagesServer([Reply("late", delay=60)]) as server:
        response = stage.play(server, deadline=Deadline.after(2))
    assert response.completion is not None
    assert response.completion.bypass is not None
    assert response.completion.bypass.kind == "deadline"


def test_a_budget_in_dollars_ends_a_run(stage: Stage) -> None:
    def model(request: MessagesRequest) -> Reply:
        again = ToolCall("Bash", {"command": "true", "description": "x"})
        return Reply(tools=(again,), usage=TokenUsage(100_000, 1_000))

    with MessagesServer(model) as server:
        response = stage.play(server, budget=Budget(max_cost_usd=1.0))
    assert len(server.calls()) < 20
    assert response.completion is not None
    assert response.completion.bypass is not None
    assert response.completion.bypass.dimension == "cost_usd"


def test_it_runs_inside_a_running_event_loop_too(stage: Stage) -> None:
    async def inside() -> PromptResponse[None]:
        with MessagesServer([Reply("done"), WRITE, Reply("done")]) as server:
            return await stage.adapter(server, FILES).aevaluate(Prompt(_work()), session=stage.session)

    async def sync_inside() -> PromptResponse[None]:
        with MessagesServer([Reply("done")]) as server:
            return stage.play(server)

    assert asyncio.run(inside()).completion is not None
    response = asyncio.run(sync_inside())
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_a_judge_asks_the_same_client_and_is_not_guarded_itself(stage: Stage) -> None:
    votes = iter(["fail", "pass"])

    def model(request: MessagesRequest) -> Reply:
        if "StructuredOutput" in request.tool_names:
            verdict = {"verdict": next(votes), "reason": "There is no proof yet."}
            return Reply(tools=(ToolCall("StructuredOutput", verdict),))
        return Reply("I have done it.")

    with MessagesServer(model) as server:
        response = stage.play(server, checker=LLMJudgeChecker("The work is proved.", votes=1))
    agent = [request for request in server.calls() if "StructuredOutput" not in request.tool_names]
    assert len(agent) == 2
    assert agent[1].mentions("There is no proof yet.")
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_the_payloads_printed_in_the_specification_hold_nobody_back(stage: Stage) -> None:
    """Why they are not the default: the real client ignores them, and only the last check tells."""
    with MessagesServer([Reply("done")]) as server:
        response = stage.play(server, dialect="spec")
    assert len(server.calls()) == 1
    assert next(one.allowed for one in stage.session[CompletionChecked].all()) is False
    assert response.completion is not None
    assert response.completion.status == "incomplete"


def test_hooks_of_ones_own_stand_beside_ours_and_not_instead(stage: Stage) -> None:
    import claude_agent_sdk

    asked: list[str] = []

    async def watch(event: dict[str, str], tool_use_id: str | None, context: object) -> dict[str, str]:
        asked.append(event["hook_event_name"])
        return {}

    own = {"Stop": [claude_agent_sdk.HookMatcher(hooks=[watch])]}
    with MessagesServer([Reply("done"), WRITE, Reply("done")]) as server:
        response = stage.play(server, options={"hooks": own})
    assert server.calls()[1].mentions(MISSING)
    assert asked == ["Stop", "Stop"]
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_without_a_filesystem_checkers_see_the_folder_in_which_the_agent_works(stage: Stage) -> None:
    with MessagesServer([Reply("done"), WRITE, Reply("done")]) as server:
        config = ClaudeAgentSDKClientConfig(
            task_completion_checker=FileExistsChecker(("out.txt",)),
            cwd=stage.project,
            tools=("Bash",),
            allowed_tools=("Bash",),
            env=clean_environment(server.base_url, stage.home),
        )
        response = ClaudeAgentSDKAdapter(client_config=config).evaluate(Prompt(_work()), session=stage.session)
    assert server.calls()[1].mentions(MISSING)
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_work_that_changes_after_the_output_was_accepted_is_looked_at_again(stage: Stage) -> None:
    (stage.project / "out.txt").write_text("work")
    undo = ToolCall("Bash", {"command": "rm out.txt", "description": "x"})
    both = Reply(tools=(ToolCall("StructuredOutput", {"summary": "s", "score": 1}), undo))
    template = PromptTemplate[Verdict](
        ns="test", key="late", sections=[MarkdownSection(title="Work", key="work", template="Write out.txt.")]
    )
    with MessagesServer(lambda request: both if not request.tool_results else Reply("done")) as server:
        adapter = stage.adapter(server, FILES)
        response = adapter.evaluate(Prompt(template), session=stage.session)
    assert not (stage.project / "out.txt").exists()
    assert response.output == Verdict("s", 1)
    assert response.completion is not None
    assert response.completion.status == "incomplete"


def test_more_refusals_than_the_clients_own_cap_are_possible(stage: Stage) -> None:
    with MessagesServer(lambda request: Reply("done")) as server:
        response = stage.play(server, guard_policy=GuardPolicy(max_stalled=10))
    assert len(server.calls()) == 11
    assert response.completion is not None
    assert response.completion.status == "capped"


def test_a_client_that_cannot_start_is_an_error_in_a_sentence(stage: Stage, tmp_path: Path) -> None:
    from donewhen.adapters import AdapterError

    with MessagesServer([]) as server, pytest.raises(AdapterError) as caught:
        stage.play(server, options={"cli_path": str(tmp_path / "nowhere")})
    assert_sentences(str(caught.value).partition(":")[0])


def _output(score: int) -> ToolCall:
    return ToolCall("StructuredOutput", {"summary": "s", "score": score})


def _bash(command: str, **more: object) -> ToolCall:
    return ToolCall("Bash", {"command": command, "description": "x", **more})


def _with_output(stage: Stage, turns: list[Reply], **config: object) -> PromptResponse[Verdict]:
    """Play these turns of the main conversation, then "done" for ever, in a project in which the work is done."""
    (stage.project / "out.txt").write_text("work")
    template = PromptTemplate[Verdict](
        ns="test", key="late", sections=[MarkdownSection(title="Work", key="work", template="Write out.txt.")]
    )
    script = iter(turns)
    with MessagesServer(lambda request: next(script, Reply("done"))) as server:
        adapter = stage.adapter(server, FILES, **config)
        return adapter.evaluate(Prompt(template), session=stage.session)


@pytest.mark.parametrize(
    ("calls", "status"),
    [
        ((_output(1), _bash("rm out.txt"), _output(2)), "incomplete"),
        ((_output(1), _bash("rm out.txt"), ToolCall("StructuredOutput", {"summary": "no score"})), "incomplete"),
        ((_output(1), _bash("rm out.txt"), _output(2), _bash("echo work > out.txt")), "verified"),
        ((_output(1), _bash("echo more > other.txt"), _output(2)), "verified"),
        ((_bash("echo more > other.txt"), _output(1)), "verified"),
    ],
    ids=["undone", "undone before an invalid output", "done again", "something else", "before the output"],
)
def test_the_verdict_is_about_the_work_after_all_calls_of_the_turn(
    stage: Stage, calls: tuple[ToolCall, ...], status: str
) -> None:
    response = _with_output(stage, [Reply(tools=calls)])
    assert response.completion is not None
    assert response.completion.status == status
    assert (stage.project / "out.txt").exists() is (status == "verified")


@pytest.mark.parametrize(("undone", "status"), [(True, "incomplete"), (False, "verified")])
def test_a_call_whose_result_never_came_is_looked_at_again(stage: Stage, undone: bool, status: str) -> None:
    # The client ends a turn at an accepted output, and may still carry out what was called beside it.
    (stage.project / "out.txt").write_text("work")
    with MessagesServer([]) as server:
        adapter = stage.adapter(server, FILES)
    guard = StopGuard(FILES)
    prompt: Prompt[None] = Prompt(PromptTemplate[None](ns="test", key="late", sections=[]))
    run = Run(adapter, prompt.render(), stage.session, Limits(), guard)
    run._enforcement.report = guard.decide(run._context("x", "end_turn")).report
    call = claude_agent_sdk.ToolUseBlock("call-1", "mcp__donewhen__remove", {"path": "out.txt"})
    run._take(claude_agent_sdk.AssistantMessage([call], "scripted"))
    if undone:
        (stage.project / "out.txt").unlink()
    report = asyncio.run(run._report(guard, "structured_output", failed=False))
    assert report.status == status


def test_work_in_the_background_that_undoes_it_after_the_output_is_not_verified(stage: Stage) -> None:
    undo = _bash("sleep 1; rm out.txt", run_in_background=True)
    response = _with_output(stage, [Reply(tools=(undo,)), Reply(tools=(_output(1),))])
    assert not (stage.project / "out.txt").exists()
    assert response.output == Verdict("s", 1)
    assert response.completion is not None
    assert response.completion.status == "incomplete"


def test_work_in_the_background_that_starts_beside_the_output_is_waited_for_too(stage: Stage) -> None:
    undo = _bash("sleep 1; rm out.txt", run_in_background=True)
    response = _with_output(stage, [Reply(tools=(_output(1), undo))])
    assert not (stage.project / "out.txt").exists()
    assert response.completion is not None
    assert response.completion.status == "incomplete"


def test_work_in_the_background_that_harms_nothing_ends_verified(stage: Stage) -> None:
    harmless = _bash("sleep 1; echo more > other.txt", run_in_background=True)
    response = _with_output(stage, [Reply(tools=(harmless,)), Reply(tools=(_output(1),))])
    assert (stage.project / "other.txt").exists()
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_an_agent_that_a_task_wakes_up_after_its_output_is_held_and_can_repair_the_work(stage: Stage) -> None:
    undo = _bash("sleep 1; rm out.txt", run_in_background=True)
    repair = Reply(tools=(_bash("echo again > out.txt"),))
    response = _with_output(stage, [Reply(tools=(undo,)), Reply(tools=(_output(1),)), repair])
    assert (stage.project / "out.txt").read_text() == "again\n"
    assert response.output == Verdict("s", 1)
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_a_task_in_the_background_that_is_stopped_can_undo_nothing(stage: Stage) -> None:
    never = _bash("sleep 600; rm out.txt", run_in_background=True)
    response = _with_output(stage, [Reply(tools=(never,)), Reply(tools=(_output(1),))], background_wait=1.0)
    assert response.completion is not None
    assert response.completion.status == "verified"
    assert (stage.project / "out.txt").exists()


def test_a_task_in_the_background_that_can_not_be_stopped_is_not_verified(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import claude_agent_sdk

    async def refuses(self: object, task_id: str) -> None:
        raise RuntimeError("no such control request")

    monkeypatch.setattr(claude_agent_sdk.ClaudeSDKClient, "stop_task", refuses)
    never = _bash("sleep 5", run_in_background=True)
    response = _with_output(stage, [Reply(tools=(never,)), Reply(tools=(_output(1),))], background_wait=0.5)
    assert response.completion is not None
    assert response.completion.status == "incomplete"
    assert_sentences(response.completion.feedback)


def test_progress_of_a_task_in_the_background_does_not_extend_the_wait(stage: Stage) -> None:
    chatty = _bash("while true; do echo progress; sleep 0.2; done", run_in_background=True)
    response = _with_output(stage, [Reply(tools=(chatty,)), Reply(tools=(_output(1),))], background_wait=1.0)
    assert response.completion is not None
    assert response.completion.status == "verified"


def test_an_async_checker_runs_on_the_loop_of_the_program(stage: Stage) -> None:
    loops: list[object] = []

    async def is_written(context: TaskCompletionContext) -> bool:
        """Write out.txt."""
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return context.filesystem is not None and context.filesystem.exists("out.txt")

    async def main() -> tuple[PromptResponse[None], object]:
        with MessagesServer([Reply("done"), WRITE, Reply("done")]) as server:
            adapter = stage.adapter(server, CompositeChecker((is_written,)))
            return await adapter.aevaluate(Prompt(_work()), session=stage.session), asyncio.get_running_loop()

    response, loop = asyncio.run(main())
    assert response.completion is not None
    assert response.completion.status == "verified"
    assert loops == [loop, loop]
