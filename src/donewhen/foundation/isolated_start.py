"""Starts donewhen again, isolated, before it reads anything.

Variables such as ``PYTHONPATH`` and ``LD_PRELOAD`` load code into a process. This replaces the process by the same
interpreter in isolated mode, with named variables. Process id, terminal, input and output stay; the exit status is that
of the new program. Imports only what every interpreter has imported already.
"""

import os
import sys

from donewhen.foundation.start_variables import (
    KEPT_AS_DATA,
    acted_before_start,
    caller_name,
    may_come_in,
    start_environment,
)

_OPTION = "donewhen"
_RESTARTED = "isolated"


class IsolationError(Exception):
    """donewhen can't be started isolated. A sentence, and what to do."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


def start_isolated() -> None:
    """Return if this process is isolated; otherwise replace it by one that is. Raise IsolationError if that fails."""
    if sys.platform == "win32":
        return
    restarted = sys._xoptions.get(_OPTION) == _RESTARTED
    if not sys.flags.isolated or (not restarted and acted_before_start(dict(os.environ), _own_libraries())):
        _start_again()
    if restarted:
        from donewhen.foundation.dependencies import add_dependencies

        if missing := add_dependencies(_around_package()):
            raise IsolationError(
                f"donewhen starts Python isolated, and there it does not find {', '.join(missing)}. Folders in "
                "PYTHONPATH and the current folder are not searched.",
                "Install donewhen with its dependencies, in an environment of its own: with `uv tool` or `pipx`.",
            )
    _keep_others_as_data(restarted)


def _start_again() -> None:
    executable = sys.executable
    if not executable or not os.path.isabs(executable):
        raise IsolationError(
            f"Python does not say where its program is (sys.executable is {executable!r}), so donewhen can't start "
            "isolated.",
            "Call Python by its absolute path: /path/to/python -I -m donewhen",
        )
    argv = [executable, *_options(), _program(), *sys.argv[1:]]
    try:
        os.execve(executable, argv, start_environment(dict(os.environ), _own_libraries()))
    except OSError as error:
        raise IsolationError(
            f"donewhen could not start isolated: {executable}: {error.strerror}.",
            "Check the interpreter, or start it that way yourself: python -I -m donewhen",
        ) from error


def _options() -> list[str]:
    """Isolated, with the options that change neither what is imported nor what is decided."""
    options = ["-I", "-X", f"{_OPTION}={_RESTARTED}", "-X", f"utf8={int(sys.flags.utf8_mode)}"]
    if sys.flags.dont_write_bytecode:
        options.append("-B")
    if os.environ.get("PYTHONUNBUFFERED"):
        options.append("-u")
    return options


def _program() -> str:
    """What to run: this package by its path, because an isolated interpreter does not find every installation."""
    around = _around_package()
    program = os.path.join(around, "donewhen", "__main__.py")
    if os.path.isfile(program):
        return program
    # `zipapp`: the package is inside the file that was run.
    archive = os.path.abspath(sys.argv[0])
    if os.path.isfile(archive) and around == archive:
        return archive
    raise IsolationError(
        f"donewhen could not start isolated: there is no file {program}.",
        "Install donewhen as files, in an environment of its own: with `uv tool` or `pipx`.",
    )


def _around_package() -> str:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.dirname(package)


def _own_libraries() -> str:
    """The folder of the libraries that belong to the interpreter, found by its program and not by variables."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))), "lib")


def _keep_others_as_data(restarted: bool) -> None:
    """Take all variables that may not come in out of the environment."""
    from donewhen.foundation.caller_variables import keep_as_data

    others: dict[str, str] = {}
    for name, value in list(os.environ.items()):
        if not may_come_in(name):
            others[caller_name(name) if restarted and name.startswith(KEPT_AS_DATA) else name] = value
            try:
                del os.environ[name]
            except OSError:  # a name that can be inherited and not be unset
                continue
    keep_as_data(others)
