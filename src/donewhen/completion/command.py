"""A checker that runs a command and requires exit status 0."""

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
    """Complete when ``argv`` exits with 0. The feedback quotes the relevant last lines of the output.

    There is no shell. The command gets a small environment: what it needs to find its tools, the variables
    named in ``pass_env``, and ``env``. It runs in ``cwd``, or in the root of the context's
    :class:`~donewhen.filesystem.HostFilesystem`, or in the current folder. After ``timeout`` seconds it is
    killed together with every process of its group; no process of the group survives the check.
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
    """Run ``argv`` with the checker's settings, in the folder of the context's files."""
    root = context.filesystem.root if isinstance(context.filesystem, HostFilesystem) else Path.cwd()
    # A relative cwd is relative to the workspace root; an absolute one is used as it is.
    folder = root / checker.cwd if checker.cwd is not None else root
    return run_command(argv, cwd=folder, timeout=checker.timeout, env=small_environment(checker.pass_env, env))


def not_runnable_result(error: CommandNotRunnableError) -> TaskCompletionResult:
    return TaskCompletionResult.incomplete(str(error), code=ReasonCode.COMMAND_NOT_FOUND)


def failure_of_command(checker: CommandChecker, result: CommandResult) -> TaskCompletionResult | None:
    """Return why the command failed; None when it succeeded."""
    if result.ending != "exited":
        return TaskCompletionResult.incomplete(
            f"`{checker.name}` did not end within {checker.timeout:g} seconds and was killed."
            f"{f' Not by its own fault: {result.strain}.' if result.strain else ''}{_output_excerpt(result)}"
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
    return TaskCompletionResult.incomplete(f"`{checker.name}` {how}.{_output_excerpt(result)}", code=code)


def _output_excerpt(result: CommandResult) -> str:
    lines = lines_that_matter(result.output)
    return "\n" + "\n".join(f"  {line}" for line in lines) if lines else " It printed nothing."


def lines_that_matter(output: str, limit: int = _LINES) -> list[str]:
    """Return the last lines of the output, and earlier lines that report errors, without decoration."""
    lines = [shorten(line.rstrip(), _LINE_LENGTH) for line in plain_text(output).split("\n")]
    lines = [line for line in lines if not _DECORATION.fullmatch(line)]
    end = lines[-limit:]
    # If the last lines report no error, half of the space goes to earlier lines that do.
    trouble = [line for line in lines[:-limit] if _TROUBLE.search(line)]
    if trouble and not any(_TROUBLE.search(line) for line in end):
        end = [*trouble[-(limit // 2) :], "…", *lines[-(limit - limit // 2) :]]
    return end
