"""The scenes: what each one does, and how its result is read from what the client and the record show."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from donewhen.adapters.hook_targets import HOOK_TARGETS
from donewhen.adapters.scripted import ToolCall
from donewhen.testing._loopback import RecordedRequest
from donewhen.testing.responses_api import ResponsesRequest
from tools.runtime_scenes import sdk
from tools.runtime_scenes.cell import Cell
from tools.runtime_scenes.client import DONE, SETTINGS, WRITE, Model, Stage, Turn

_PATIENT = f"{SETTINGS}max_attempts = 90\nmax_stalled = 90\n"


Scene = Callable[[str, Path], Cell]


def turns(*replies: Turn, then: Turn = DONE) -> Model:
    """A model that gives these replies to the conversation, and then always the same."""
    left = list(replies)
    return lambda request: left.pop(0) if left else then


def early_stop(name: str, folder: Path) -> Cell:
    """The model says that it is done before the file is there."""
    stage = Stage(name, folder)
    played = stage.play(turns(DONE, WRITE))
    if played.asked_again() and not played.rows and (stage.root / "out.txt").exists():
        return Cell("held")
    return _unexpected(played.status, played.output)


def structured_output(name: str, folder: Path) -> Cell:
    """The model gives its final answer in the form of a schema."""
    stage = Stage(name, folder)
    if name == "claude":
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        answer = Turn(tool=ToolCall("StructuredOutput", {"n": 1}))
        played = stage.play(turns(answer, WRITE, then=answer), flags=("--json-schema", json.dumps(schema)))
    elif name == "codex":
        path = folder / "schema.json"
        form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        path.write_text(json.dumps({**form, "additionalProperties": False}))
        answer = Turn('{"n": 1}')
        played = stage.play(turns(answer, WRITE, then=answer), flags=("--output-schema", str(path)))
    else:
        return Cell("can't", "it has no structured output")
    return Cell("held") if played.asked_again() and not played.rows else _unexpected(played.status, played.output)


def sub_agent(name: str, folder: Path) -> Cell:
    """A sub-agent stops early; it has checks of its own."""
    stage = Stage(name, folder)
    stage.settings(f'{SETTINGS}[subagent_stop]\nfiles = ["sub.txt"]\n')
    missing = "Missing required files: sub.txt"
    if name == "claude":
        launch = {"description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": False}
        call = ToolCall("Agent", launch)
    elif name == "copilot":
        launch = {"description": "d", "prompt": "p", "agent_type": "general-purpose", "name": "helper", "mode": "sync"}
        call = ToolCall("task", launch)
    elif name == "codex":
        call = ToolCall("multi_agent_v1.spawn_agent", {"message": "p"})
    else:
        return Cell("can't", "it has no event for the end of a sub-agent")
    work = [DONE, Turn(command="echo work > sub.txt"), DONE]
    if name == "codex":
        played = stage.play(_with_codex_agent(call, turns(*work)))
    else:
        played = stage.play(turns(Turn(tool=call), *work, WRITE))
    if played.asked_again(missing) and (stage.root / "sub.txt").exists():
        return Cell("held")
    return _unexpected(played.status, played.output)


def _with_codex_agent(start: ToolCall, agent: Model) -> Model:
    """A model that starts a sub-agent, waits for it, and then does the work itself."""

    def main(request: RecordedRequest) -> Turn:
        if not isinstance(request, ResponsesRequest) or not request.tool_results:
            return Turn(tool=start)
        result = request.tool_results[0]
        if not result.text.startswith('{"agent_id"'):
            return WRITE if result.text.startswith('{"status"') else DONE
        agents = [json.loads(result.text)["agent_id"]]
        return Turn(tool=ToolCall("multi_agent_v1.wait_agent", {"targets": agents}))

    def model(request: RecordedRequest) -> Turn:
        is_agent = isinstance(request, ResponsesRequest) and request.kind == "subagent"
        return (agent if is_agent else main)(request)

    return model


def own_cap(name: str, folder: Path) -> Cell:
    """The agent never does the work: donewhen lets it go after its own limit, and records it."""
    stage = Stage(name, folder)
    played = stage.play(turns())
    return _of(bool(played.asked_again()), [row for row in played.rows if row["status"] == "capped"], played.output)


def own_cap_with_tools(name: str, folder: Path) -> Cell:
    """The same with a tool call before each stop, which changes nothing of the work."""
    stage = Stage(name, folder)
    spoken = [0]

    def model(request: RecordedRequest) -> Turn:
        spoken[0] += 1
        return DONE if spoken[0] % 2 else Turn(command=f"echo {spoken[0]}")

    played = stage.play(model)
    return _of(bool(played.asked_again()), [row for row in played.rows if row["status"] == "capped"], played.output)


def clients_cap(name: str, folder: Path) -> Cell:
    """The limit of donewhen is high, so that the client's own limit of refusals comes first."""
    if name == "codex":
        return Cell("can't", "it has no limit of refusals")
    stage = Stage(name, folder)
    stage.settings(_PATIENT)
    # Gemini's limit is a detection of loops, which looks at repeated tool calls.
    played = stage.play(_ticking() if name == "gemini" else turns())
    return _of(bool(played.asked_again()), played.rows, played.output)


def _ticking() -> Model:
    spoken = [0]

    def model(request: RecordedRequest) -> Turn:
        spoken[0] += 1
        return DONE if spoken[0] % 2 else Turn(command="true")

    return model


def max_turns(name: str, folder: Path) -> Cell:
    """The client's limit of turns ends the run in the middle of the work."""
    stage = Stage(name, folder)
    if name == "claude":
        flags: Sequence[str] = ("--max-turns", "2")
    elif name == "gemini":
        path = stage.root / ".gemini" / "settings.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "model": {"maxSessionTurns": 2}}))
        flags = ()
    else:
        where = " outside of its autopilot mode" if name == "copilot" else ""
        return Cell("can't", f"it has no option for a limit of turns{where}")
    played = stage.play(turns(then=Turn(command="true")), flags=flags)
    if not played.rows:
        return Cell("can't", f"the client exits with status {played.status} without calling a hook")
    return Cell("recorded")


def deadline(name: str, folder: Path) -> Cell:
    """The time is up: whoever started the client ends it with SIGTERM in the middle of the work."""
    return _ended_by(signal.SIGTERM, name, folder)


def interrupt(name: str, folder: Path) -> Cell:
    """The person interrupts the client with SIGINT in the middle of the work."""
    return _ended_by(signal.SIGINT, name, folder)


def _ended_by(number: signal.Signals, name: str, folder: Path) -> Cell:
    stage = Stage(name, folder)
    asked = threading.Event()

    def model(request: RecordedRequest) -> Turn:
        asked.set()
        return Turn("Done!", delay=20.0)

    played = stage.play(model, interrupt=(asked, number), patience=40.0)
    cell = _of(False, played.rows, played.output)
    if cell.result == "can't":
        return Cell("can't", f"the client ends at {number.name} without calling a hook")
    return cell


def budget(name: str, folder: Path) -> Cell:
    """The client's budget is used up."""
    if name != "claude":
        if name == "copilot":
            return Cell("can't", "its limit counts GitHub's credits, which a model of another provider does not use")
        return Cell("can't", "it has no option for a budget")
    stage = Stage(name, folder)
    played = stage.play(turns(then=Turn(command="true")), flags=("--max-budget-usd", "0.00001"))
    return _of(False, played.rows, played.output)


def api_error(name: str, folder: Path) -> Cell:
    """The model's API refuses the request."""
    stage = Stage(name, folder)
    played = stage.play(turns(then=Turn("No.", status=400)))
    return _of(False, played.rows, played.output)


def raising_check(name: str, folder: Path) -> Cell:
    """The check itself fails with an error."""
    stage = Stage(name, folder)
    stage.settings('[stop]\ncommands = ["/nowhere/check"]\n')

    def model(request: RecordedRequest) -> Turn:
        if request.mentions("/nowhere/check"):
            stage.settings('[stop]\nfiles = ["donewhen.toml"]\n')
        return DONE

    played = stage.play(model)
    return Cell("held") if played.asked_again("/nowhere/check") else _unexpected(played.status, played.output)


def hanging_check(name: str, folder: Path) -> Cell:
    """The check does not end."""
    stage = Stage(name, folder)
    stage.settings('[stop]\ncommands = ["sleep 600"]\ncheck_timeout = 1\n')

    def model(request: RecordedRequest) -> Turn:
        if request.mentions("check_timeout"):
            stage.settings('[stop]\nfiles = ["donewhen.toml"]\n')
        return DONE

    played = stage.play(model)
    return Cell("held") if played.asked_again("check_timeout") else _unexpected(played.status, played.output)


def resume(name: str, folder: Path) -> Cell:
    """A session that ended with an error is resumed, and the agent stops early again."""
    stage = Stage(name, folder)
    stage.play(turns(Turn(command="true"), then=Turn("No.", status=400)))
    flags = {"claude": ("--continue",), "codex": ("resume", "--last"), "gemini": ("-r", "latest")}
    played = stage.play(turns(DONE, WRITE), flags=flags.get(name, ("--continue",)))
    held = bool(played.asked_again()) and (stage.root / "out.txt").exists()
    return Cell("held") if held else _unexpected(played.status, played.output)


def sub_folder(name: str, folder: Path) -> Cell:
    """The client is started in a sub-folder of the project."""
    stage = Stage(name, folder / "project-hooks")
    (stage.root / "src").mkdir()
    if stage.play(turns(DONE, WRITE), folder=stage.root / "src").asked_again():
        return Cell("held")
    own = Stage(name, folder / "own-hooks", scope="user")
    (own.root / "src").mkdir()
    if own.play(turns(DONE, WRITE), folder=own.root / "src").asked_again():
        return Cell("held", "by your own hooks (--user); a project's are not loaded there")
    return Cell("can't", "neither the project's hooks nor your own are loaded there")


def missing_donewhen(name: str, folder: Path) -> Cell:
    """The hooks are there, but donewhen can't be run."""
    stage = Stage(name, folder)
    stage.break_donewhen()
    played = stage.play(_ticking())
    held = played.asked_again("donewhen could not be run")
    return _of(bool(held), played.rows, played.output)


SCENES: dict[str, Scene] = {
    "early stop": early_stop,
    "structured output": structured_output,
    "sub-agent": sub_agent,
    "own cap": own_cap,
    "own cap, with tools": own_cap_with_tools,
    "client's cap": clients_cap,
    "max turns": max_turns,
    "deadline": deadline,
    "budget": budget,
    "API error": api_error,
    "interrupt": interrupt,
    "raising check": raising_check,
    "hanging check": hanging_check,
    "resume": resume,
    "sub-folder": sub_folder,
    "missing donewhen": missing_donewhen,
}


RUNTIMES = {**{name: target.title for name, target in HOOK_TARGETS.items()}, sdk.NAME: sdk.TITLE}
"""The columns of the table."""


def play_scene(name: str, scene: str, folder: Path) -> Cell:
    """Play one scene with one runtime, in a new folder."""
    return sdk.play(scene, folder) if name == sdk.NAME else SCENES[scene](name, folder)


def _of(held: bool, rows: Sequence[object], output: str) -> Cell:
    if rows:
        return Cell("held, recorded" if held else "recorded")
    return Cell("held") if held else _unexpected(None, output)


def _unexpected(status: int | None, output: str) -> Cell:
    words = " ".join(output.split())[-120:]
    return Cell("can't", f"status {status}: {words}" if status is not None else words)
