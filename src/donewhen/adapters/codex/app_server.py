"""Ask Codex which hooks it knows, and whether it trusts them."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

from donewhen.adapters.guard_choice import AdapterError


def listed_hooks(folder: Path, timeout: float = 20.0) -> list[dict[str, Any]] | None:
    """Return every hook that Codex would use in ``folder``, in Codex's format; None if Codex is not installed.

    The answer comes from its app server over standard input and output, without a model, a login or the network.
    """
    program = shutil.which("codex")
    if program is None:
        return None
    questions = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "donewhen", "version": "0"}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(folder.resolve())]}},
    )
    process = subprocess.Popen(
        [program, "app-server"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    patience = threading.Timer(timeout, process.kill)
    patience.start()
    try:
        if process.stdin is None or process.stdout is None:  # pragma: no cover - both are pipes
            raise AssertionError("no pipes")
        # Keep standard input open until the answer arrives: at end of file Codex exits without answering.
        process.stdin.writelines(json.dumps(question) + "\n" for question in questions)
        process.stdin.flush()
        for line in process.stdout:
            if (hooks := _hooks_in(line)) is not None:
                return hooks
    except BrokenPipeError:
        pass
    finally:
        patience.cancel()
        process.kill()
        process.communicate()
    raise AdapterError("Codex did not list its hooks; it may be too old.", next_step="codex --version")


def _hooks_in(line: str) -> list[dict[str, Any]] | None:
    try:
        answer = json.loads(line)
        if answer["id"] != 2:
            return None
        return [hook for folder in answer["result"]["data"] for hook in folder["hooks"]]
    except (ValueError, KeyError, TypeError):
        return None
