"""Does a command succeed?"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from donewhen.filesystem import HostFilesystem
from donewhen.foundation.plain_text import plain_text, shorten
from donewhen.foundation.process import CommandNotRunnableError, CommandResult, run_command, small_environment
from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

_LINES = 12
_LINE_LENGTH = 200
_DECORATION = re.compile(r"[\W_]*")
_TROUBLE = re.compile(
    r"\b(?:error|errors|failed|failure|fatal|exception|panic|undefined|expected)\b|Error\b|^E  ", re.IGNORECASE
)


class CommandChecker:
    """Complete when ``argv`` exits with 0. The agent reads the last lines that matter.

    There is no shell. The command gets a small environment: what it needs to find its tools, the variables
    named in ``pass_env``, and ``env``. It runs in ``cwd``, or in the root of the context's
    :class:`~donewhen.filesystem.HostFilesystem`, or in the current folder. After ``timeout`` seconds it is
    killed together with every process of its group; nothing of the group is left behind in any case.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        timeout: float = 300.0,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        pass_env: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        self.argv = checked_argv(argv)
        if not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
        self.timeout = timeout
        self.cwd = None if cwd is None else Path(cwd)
        self.env = dict(env or {})
        self.pass_env = tuple(pass_env)
        self.name = name or shorten(shlex.join(self.argv), 80)

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        try:
            result = run_checked_command(self, self.argv, self.env, context)
        except CommandNotRunnableError as error:
            return not_runnable_result(error)
        failure = failure_of_command(self, result)
        return TaskCompletionResult.ok(f"`{self.name}` succeeded.") if failure is None else failure


def checked_argv(argv: Sequence[str]) -> tuple[str, ...]:
    if isinstance(argv, str):
        raise TypeError(f"argv must be a list, not a string; there is no shell. Use {shlex.split(argv)!r}")
    words = tuple(argv)
    if not words or not all(isinstance(word, str) for word in words) or not words[0]:
        raise ValueError(f"argv must be a list of strings that starts with the command, not {argv!r}")
    return words


def run_checked_command(
    checker: CommandChecker, argv: Sequence[str], env: Mapping[str, str], context: TaskCompletionContext
) -> CommandResult:
    """Run ``argv`` under the checker's settings, where the context's files are."""
    root = context.filesystem.root if isinstance(context.filesystem, HostFilesystem) else Path.cwd()
    # A relative cwd is meant below the workspace; an absolute one stands for itself.
    folder = root / checker.cwd if checker.cwd is not None else root
    return run_command(argv, cwd=folder, timeout=checker.timeout, env=small_environment(checker.pass_env, env))


def not_runnable_result(error: CommandNotRunnableError) -> TaskCompletionResult:
    return TaskCompletionResult.incomplete(str(error), code=ReasonCode.COMMAND_NOT_FOUND)


def failure_of_command(checker: CommandChecker, result: CommandResult) -> TaskCompletionResult | None:
    """Why the command did not succeed; None when it did."""
    if result.ending != "exited":
        return TaskCompletionResult.incomplete(
            f"`{checker.name}` did not end within {checker.timeout:g} seconds and was killed.{_quoted(result)}"
            if result.ending == "timed_out"
            else f"`{checker.name}` was stopped because its check was abandoned.",
            code=ReasonCode.COMMAND_TIMEOUT,
        )
    if result.exit_code == 0:
        return None
    if result.exit_code < 0:
        how, code = f"was ended by signal {-result.exit_code}", ReasonCode.COMMAND_KILLED
    else:
        how, code = f"failed with exit status {result.exit_code}", ReasonCode.COMMAND_FAILED
    return TaskCompletionResult.incomplete(f"`{checker.name}` {how}.{_quoted(result)}", code=code)


def _quoted(result: CommandResult) -> str:
    lines = lines_that_matter(result.output)
    return "\n" + "\n".join(f"  {line}" for line in lines) if lines else " It printed nothing."


def lines_that_matter(output: str, limit: int = _LINES) -> list[str]:
    """The end of a command's output, and the lines before it that speak of trouble, without decoration."""
    lines = [shorten(line.rstrip(), _LINE_LENGTH) for line in plain_text(output).split("\n")]
    lines = [line for line in lines if not _DECORATION.fullmatch(line)]
    end = lines[-limit:]
    # Half of the room goes to earlier trouble, when the end of the output is not about it.
    trouble = [line for line in lines[:-limit] if _TROUBLE.search(line)]
    if trouble and not any(_TROUBLE.search(line) for line in end):
        end = [*trouble[-(limit // 2) :], "…", *lines[-(limit - limit // 2) :]]
    return end
