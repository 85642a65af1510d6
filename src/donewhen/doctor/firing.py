"""Start the real client against a scripted model on loopback, and see whether the installed hook holds it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from donewhen.adapters.agent_client import Api, ClientRoom, ClientStart
from donewhen.adapters.diagnosis import Diagnosis
from donewhen.doctor.canary import environment_block, smallest
from donewhen.doctor.hook_settings import RuntimeSettings
from donewhen.doctor.scratch import PROMPT, foreign_stop_hooks, inherited_from, scratch_of
from donewhen.foundation.plain_text import one_line
from donewhen.testing._loopback import LoopbackServer, RecordedRequest

PATIENCE = 60.0
"""In seconds: how long a client may take."""
_MOST_CALLS = 12
_SHOWN = 4000

Outcome = Literal["held", "released", "silent", "timed_out"]


@dataclass(frozen=True)
class Firing:
    """What a client did. ``silent``: it never called the model."""

    outcome: Outcome
    seconds: float
    output: str


def fired(runtime: RuntimeSettings, environ: Mapping[str, str], *, explained: bool = False) -> Iterator[Diagnosis]:
    """Whether the real client, with the hooks as they are installed, is held.

    ``explained``: there are other findings that say why it may not be.
    """
    name, title = f"{runtime.name} fired", runtime.target.title
    program = shutil.which(runtime.target.client.program, path=environ.get("PATH", os.defpath))
    if program is None:
        reason = f"not fired: {runtime.target.client.program} is not installed, so only the command line was tried"
        yield Diagnosis(name, "note", reason)
        return
    firing = fire(runtime, program, environ)
    took = f"in {firing.seconds:.1f} s"
    match firing.outcome:
        case "held":
            yield Diagnosis(name, "ok", f"{title} was held {took}: a scripted model was asked again, with the reason")
        case "released":
            detail = f"{title} let the agent go although a file was missing"
            if explained:
                yield Diagnosis(name, "broken", f"{detail}; the findings above say why")
            else:
                yield _released(runtime, program, environ)
        case "silent":
            why = one_line(firing.output, 200) or "no output"
            yield Diagnosis(name, "note", f"not proven: {title} ended {took} without calling a model: {why}")
        case "timed_out":
            yield Diagnosis(name, "note", f"not proven: {title} was stopped after {firing.seconds:.0f} s")


def _released(runtime: RuntimeSettings, program: str, environ: Mapping[str, str]) -> Diagnosis:
    name, title = f"{runtime.name} fired", runtime.target.title
    others = foreign_stop_hooks(runtime)
    if (culprit := _disarming_variable(runtime, program, environ)) is not None:
        return culprit
    if others and fire(runtime, program, environ, foreign=False).outcome == "held":
        lines = "; ".join(one_line(entry.command, 80) for _, entry in others)
        paths = ", ".join(sorted({str(file.path) for file, _ in others}))
        detail = f"{title} let the agent go because of another hook for the same event: {lines}"
        return Diagnosis(name, "broken", detail, f"Remove that hook from {paths}.")
    detail = f"{title} let the agent go although a file was missing: it does not run the installed hook"
    return Diagnosis(name, "broken", detail, f"donewhen hooks install --{runtime.name}")


def _disarming_variable(runtime: RuntimeSettings, program: str, environ: Mapping[str, str]) -> Diagnosis | None:
    """The variables without which the client is held; None if there are none."""
    block = environment_block(runtime)
    names = [name for name in runtime.target.client.hook_variables if name in environ or name in block]

    def is_held_without(left_out: Sequence[str]) -> bool:
        return fire(runtime, program, environ, without=left_out).outcome == "held"

    if not names or not is_held_without(names):
        return None
    names = list(smallest(names, is_held_without))
    listed = ", ".join(names)
    key = runtime.target.client.environment_key
    place = "the environment" if set(names) & set(environ) else f"the `{key}` block of the settings"
    return Diagnosis(
        f"{runtime.name} environment",
        "broken",
        f"{runtime.target.title} let the agent go because of {listed} in {place}",
        f"unset {' '.join(names)}" if set(names) & set(environ) else f"Remove {listed} from `{key}`.",
    )


def fire(
    runtime: RuntimeSettings,
    program: str,
    environ: Mapping[str, str],
    *,
    foreign: bool = True,
    without: Sequence[str] = (),
) -> Firing:
    """Run the client once in a scratch project; its model says that it is done each time that it is asked.

    ``without`` are variables to leave out.
    """
    with scratch_of(runtime, foreign=foreign, without=without) as scratch:
        held = threading.Event()

        def delay(request: RecordedRequest) -> float:
            if not request.mentions(scratch.missing):
                return 0.0
            held.set()
            # The client waits for its model while it is stopped, so that no hook runs then and outlives it.
            return PATIENCE

        with scripted_server(runtime.target.client.api, delay) as server:
            room = ClientRoom(scratch.home, scratch.project, server.root_url, inherited_from(runtime, environ, without))
            start = runtime.target.client.start(program, room, PROMPT)
            began = time.monotonic()
            ended, output = run_until(start, scratch.project, held, PATIENCE)
            seconds = time.monotonic() - began
            calls = [request for request in server.requests if request.method == "POST" and request.body]
    if held.is_set():
        return Firing("held", seconds, output)
    if not ended:
        return Firing("timed_out", seconds, output)
    return Firing("released" if calls else "silent", seconds, output)


def scripted_server(api: Api, delay: Callable[[RecordedRequest], float]) -> LoopbackServer[Any, Any]:
    """A server on loopback whose model always says that it is done, after a delay that depends on the request."""
    if api == "messages":
        from donewhen.testing import messages_api

        def message(request: RecordedRequest) -> messages_api.Reply:
            return messages_api.Reply("Done.", delay=delay(request))

        return messages_api.MessagesServer(message, limit=_MOST_CALLS)
    if api == "gemini":
        from donewhen.testing import gemini_api

        def content(request: RecordedRequest) -> gemini_api.Reply:
            return gemini_api.Reply("Done.", delay=delay(request))

        return gemini_api.GeminiServer(content, limit=_MOST_CALLS)
    from donewhen.testing import responses_api

    def response(request: RecordedRequest) -> responses_api.Reply:
        return responses_api.Reply("Done.", delay=delay(request))

    return responses_api.ResponsesServer(response, limit=_MOST_CALLS)


def run_until(start: ClientStart, folder: Path, enough: threading.Event, patience: float) -> tuple[bool, str]:
    """Run the client until it ends, ``enough`` is set or the time is up; kill its process group in any case.

    Return whether it ended by itself, and its output.
    """
    # A file, not a pipe: whatever the client has started may keep a pipe open after its end.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            start.arguments,
            cwd=folder,
            env=start.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + patience
        try:
            while process.poll() is None and not enough.wait(0.05) and time.monotonic() < deadline:
                pass
            ended = process.poll() is not None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _SHOWN))
        return ended, output.read().decode(errors="replace")
