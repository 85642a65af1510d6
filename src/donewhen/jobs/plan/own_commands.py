"""Commands of the completion tool itself among the commands that a job requires.

A plan of the original tool may require ``plan_check.py`` or ``python3 scripts/reward_eval.py --project .``. The gates
answer such a command themselves and never start it: a script in the project could be written by the judged agent.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath

_SCRIPTS = frozenset({"plan_check", "reward_eval", "truth_eval", "job_complete"})
_VIEWS = frozenset({"dashboard_build", "dashboard_projector", "task_tracker_build"})
"""Scripts that write the dashboard and the tracker, as every command of donewhen does."""
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")


def own_command(command: str) -> str | None:
    """Return the script of the original tool that a command names, such as ``plan_check``; None if it is another."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words and _is_python(words[0]):
        words = words[2:] if words[1:3] == ["-m", "donewhen"] else words[1:]
    match words:
        case ["theworkshop" | "donewhen", verb, *_]:
            name: str | None = verb.replace("-", "_")
        case [script, *_]:
            name = _script(script)
        case _:
            name = None
    return name if name in _SCRIPTS | _VIEWS else None


def checking_commands(commands: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that check the work: those that are not answered by the gates."""
    return tuple(command for command in commands if own_command(command) is None)


def shadowed_script(command: str, folder: Path) -> str | None:
    """Return the script in ``folder`` that a command of the tool itself names too: it would not be run."""
    words = shlex.split(command) if own_command(command) is not None else []
    return next((word for word in words[:2] if word.endswith(".py") and (folder / word).is_file()), None)


def _is_python(word: str) -> bool:
    """Whether a word is Python itself, and not a program of the project with that name."""
    path = PurePosixPath(word)
    return _PYTHON.fullmatch(path.name) is not None and (path.is_absolute() or "/" not in word)


def _script(word: str) -> str | None:
    """Return the name of ``NAME.py``, ``scripts/NAME.py`` or ``…/theworkshop/scripts/NAME.py``. A script of the same
    name elsewhere, or with ``./`` before it, is the project's own, and is run."""
    if word.startswith("./"):
        return None
    path = PurePosixPath(word)
    folders = path.parts[:-1]
    known = folders in ((), ("scripts",)) or folders[-2:] == ("theworkshop", "scripts")
    return path.stem if known and path.suffix == ".py" else None
