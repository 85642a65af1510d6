"""Recognises the test runner in a command line, without running anything.

An unknown command is not a test runner. A command that probably runs tests, but whose test ids can't be had, is a
*wrapper*: it says what is unknown to the person who agrees to it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.test_reports.known_programs import (
    COVERAGE,
    COVERAGE_VALUES,
    LAUNCHERS,
    NODE_VALUES,
    NPM_TEST,
    PREFIXES,
    PYTEST,
    PYTHON,
    TASK_RUNNERS,
    TEST_MODULES,
    TEST_PROGRAMS,
    TEST_WORD,
    TOOLS,
)

RunnerKind = Literal["pytest", "unittest", "node", "wrapper", "none"]

_NO_REPORT = re.compile(r"no:(junitxml|_pytest\.junitxml)")
_OWN_REPORT = ("--junitxml", "--junit-xml")
_SPLIT_STRING = re.compile(r"-[i0v]*S|--split-string")


@dataclass(frozen=True)
class Cleared:
    """What ``env`` keeps from a program: everything, or some variables; others it sets."""

    everything: bool
    variables: Mapping[str, str]
    """Variables that it sets, or removes (an empty value)."""
    position: int
    """The word before which another assignment can stand."""


@dataclass(frozen=True)
class TestRunner:
    """The test runner of a command; positions are indexes of the command's words."""

    __test__ = False  # pytest collects classes by their name

    kind: RunnerKind
    arguments: int = 0
    """The first argument of the runner itself."""
    module: tuple[int, int] = (0, 0)
    """The words with the option ``-m`` and with the module's name; the same if they are one word."""
    folder: str = ""
    """The folder in which it runs, relative to that of the command."""
    cleared: Cleared | None = None
    script: int = 0
    """The word with the Python script that an interpreter runs, if it runs one; 0 otherwise."""
    unknown: str = ""
    """For a wrapper: the sentence that says what is not known, for the person who agrees to the command."""

    @property
    def reports_tests(self) -> bool:
        """Whether test ids can be had."""
        return self.kind not in ("wrapper", "none")


class OwnReport(NamedTuple):
    """The JUnit report that a pytest command asks for itself."""

    path: str


def runner_of(argv: Sequence[str]) -> TestRunner:
    """The test runner that a command starts."""
    words = _Words(tuple(argv))
    try:
        runner = _program(words, 0)
    except RecursionError:  # hundreds of programs that start one another
        runner = words.wrapper(0, certain=False)
    if runner.kind == "pytest" and (unknown := _why_no_report(argv[runner.arguments :])):
        runner = replace(runner, kind="wrapper", unknown=unknown)
    if runner.kind != "wrapper":
        return runner
    command = one_line(shlex.join(argv), 80)
    return replace(runner, unknown=runner.unknown.replace("COMMAND", f"`{command}`"))


def own_report(arguments: Sequence[str]) -> OwnReport | None:
    """The report that pytest writes because of these arguments; the last one counts."""
    found: OwnReport | None = None
    for position, word in enumerate(arguments):
        if word == "--":
            break
        option, equals, value = word.partition("=")
        if option in _OWN_REPORT:
            following = arguments[position + 1] if position + 1 < len(arguments) else ""
            found = OwnReport(value if equals else following)
    return found


def _why_no_report(arguments: Sequence[str]) -> str:
    report = own_report(arguments)
    if report is not None and (not report.path or "$" in report.path or report.path.startswith("~")):
        return "COMMAND writes its test report to an unknown place, so lost tests would not be noticed."
    plugins = [word[2:] or following for word, following in _pairs(arguments) if word.startswith("-p")]
    if any(_NO_REPORT.fullmatch(plugin) for plugin in plugins):
        return "COMMAND switches test reports off, so lost tests would not be noticed."
    return ""


def _pairs(words: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(words, (*words, "")[1:], strict=True))


@dataclass(frozen=True)
class _Words:
    """The words of a command, and what the programs in front of the test runner do to its surroundings."""

    argv: tuple[str, ...]
    folder: str = ""
    cleared: Cleared | None = None

    def __getitem__(self, position: int) -> str:
        return self.argv[position] if position < len(self.argv) else ""

    def __len__(self) -> int:
        return len(self.argv)

    def runner(self, kind: RunnerKind, arguments: int, module: tuple[int, int] = (0, 0)) -> TestRunner:
        return TestRunner(kind, arguments, module, self.folder, self.cleared)

    def wrapper(self, position: int, *, certain: bool) -> TestRunner:
        unknown = "COMMAND does not report test ids, so lost tests would not be noticed."
        if not certain:
            unknown = "COMMAND does not report test ids: if it runs tests, lost ones would not be noticed."
        return TestRunner("wrapper", position, folder=self.folder, cleared=self.cleared, unknown=unknown)

    def mention_tests(self, position: int) -> bool:
        """Whether a word from this position on is the name of a test runner, or has the word "test" in it."""
        return any(
            TEST_WORD.search(word) or name in TEST_PROGRAMS or PYTEST.fullmatch(name)
            for word in self.argv[position:]
            for name in (_name(word),)
        )


_NONE = TestRunner("none")


def _name(word: str) -> str:
    return posixpath.basename(word.replace("\\", "/")).removesuffix(".exe")


def _program(words: _Words, position: int) -> TestRunner:
    """The runner that the program at this position is or starts."""
    if position >= len(words):
        return _NONE
    name = _name(words[position])
    if PYTEST.fullmatch(name):
        return words.runner("pytest", position + 1)
    if PYTHON.fullmatch(name):
        return _python(words, position + 1)
    if COVERAGE.fullmatch(name):
        return _coverage(words, position + 1)
    if name in PREFIXES:
        return _prefix(words, position)
    if name in LAUNCHERS:
        return _launcher(words, position)
    if name in ("node", "nodejs"):
        return _node(words, position + 1)
    return _other(words, position)


def _other(words: _Words, position: int) -> TestRunner:
    """A program that does not report test ids, or that runs no tests."""
    name = _name(words[position])
    if name in TEST_PROGRAMS:
        return words.wrapper(position, certain=True)
    mentioned = words.mention_tests(position + 1)
    if name in TASK_RUNNERS or name.endswith(".sh"):
        return words.wrapper(position, certain=mentioned or bool(TEST_WORD.search(name)))
    short_form = name in ("npm", "pnpm") and words[position + 1] in NPM_TEST
    if (name in TOOLS and (mentioned or short_form)) or _is_test_script(words[position], name):
        return words.wrapper(position, certain=True)
    return _NONE


def _is_test_script(word: str, name: str) -> bool:
    return bool(TEST_WORD.search(name.partition(".")[0])) and ("/" in word or "." in name)


def _python(words: _Words, position: int) -> TestRunner:
    """Read the options of an interpreter up to its module or script, as CPython does."""
    while position < len(words):
        word = words[position]
        if word == "--":
            return _run_script(words, position + 1)
        if word == "--check-hash-based-pycs":
            position += 2
            continue
        if not word.startswith("-"):
            return _run_script(words, position)
        if not word.startswith("--"):
            option = next((index for index, letter in enumerate(word) if index and letter in "cmWXhV?"), None)
            letter = "" if option is None else word[option]
            value = "" if option is None else word[option + 1 :]
            if letter == "m":
                place = position if value else position + 1
                return _module(words, value or words[place], (position, place))
            if letter in ("c", "h", "V", "?") or word == "-":
                return _NONE
            position += bool(letter) and not value
        position += 1
    return _NONE


def _run_script(words: _Words, position: int) -> TestRunner:
    runner = _script(words, position)
    own = runner.kind in ("none", "wrapper") and words[position].endswith(".py")
    return replace(runner, script=position) if own else runner


def _script(words: _Words, position: int) -> TestRunner:
    """A Python script: of a test runner, or of the project."""
    name = _name(words[position])
    if PYTEST.fullmatch(name):
        return words.runner("pytest", position + 1)
    if COVERAGE.fullmatch(name):
        return _coverage(words, position + 1)
    return _other(words, position)


def _module(words: _Words, module: str, places: tuple[int, int]) -> TestRunner:
    module = module.removesuffix(".__main__")
    after = places[1] + 1
    if module in ("pytest", "py.test"):
        return words.runner("pytest", after)
    if module == "unittest":
        return words.runner("unittest", after, places)
    if module == "coverage":
        return _coverage(words, after)
    if module in LAUNCHERS:
        return _launcher(words, places[1])
    if module in TEST_MODULES:
        return words.wrapper(places[1], certain=True)
    if module == "invoke" or (module == "django" and words.mention_tests(after)):
        return words.wrapper(places[1], certain=words.mention_tests(after))
    # A profiler or the like, which starts a test runner.
    starts_tests = {("-m", "pytest"), ("-m", "unittest")}.intersection(_pairs(words.argv[after:]))
    return words.wrapper(places[1], certain=True) if starts_tests or TEST_WORD.search(module) else _NONE


def _coverage(words: _Words, position: int) -> TestRunner:
    if words[position] != "run":
        return _NONE
    position += 1
    flag: int | None = None
    while words[position].startswith("-"):
        word = words[position]
        if word == "--module" or (not word.startswith("--") and "m" in word):
            flag = position
        position += 2 if word in COVERAGE_VALUES else 1
    if flag is None:
        return _script(words, position)
    return _module(words, words[position], (flag, position))


def _prefix(words: _Words, position: int) -> TestRunner:
    """A program that only changes the surroundings of the next one."""
    name = _name(words[position])
    options = PREFIXES[name]
    position += 1
    folder = words.folder
    everything = words.cleared is not None and words.cleared.everything
    variables = {} if words.cleared is None else dict(words.cleared.variables)
    while words[position].startswith("-"):
        word = words[position]
        if name == "env" and _SPLIT_STRING.match(word):
            return words.wrapper(position, certain=words.mention_tests(position))
        option, value, taken = _option(word, words[position + 1], options.values)
        position += taken
        if word == "--":
            break
        if option in options.folder:
            folder = posixpath.join(folder, value)
        elif name == "env" and option in ("-u", "--unset"):
            variables[value] = ""
        elif name == "env" and (word in ("-", "--ignore-environment") or ("i" in word and not word.startswith("--"))):
            everything, variables = True, {}
    position += options.skipped
    while name == "env" and "=" in words[position]:
        variable, _, value = words[position].partition("=")
        variables[variable] = value
        position += 1
    cleared = words.cleared
    if name == "env" and (everything or variables):
        cleared = Cleared(everything, MappingProxyType(variables), position)
    return _program(replace(words, folder=folder, cleared=cleared), position)


def _option(word: str, following: str, values: frozenset[str]) -> tuple[str, str, int]:
    """An option, its value and the number of words that both take."""
    if word in values:
        return word, following, 2
    if not word.startswith("--") and word[:2] in values:
        return word[:2], word[2:], 1
    option, _, value = word.partition("=")
    return option, value, 1


def _launcher(words: _Words, position: int) -> TestRunner:
    """``uv run`` and the like: a program that starts another one in the environment of the project."""
    start, name = position, _name(words[position])
    options = LAUNCHERS[name]
    run, module = name == "uvx", False
    folder = words.folder
    position += 1
    while position < len(words):
        word = words[position]
        if word.startswith("-"):
            option, value, taken = _option(word, words[position + 1], options.values)
            position += taken
            if word == "--":
                break
            if option in options.folder:
                folder = posixpath.join(folder, value)
            module |= run and name == "uv" and word in ("-m", "--module")
            continue
        if run:
            break
        position += 1
        run = word == "run"
        # ``uv tool run``; another verb, such as ``hatch test``, may run tests itself.
        if not run and (name, word) != ("uv", "tool"):
            return words.wrapper(start, certain=True) if words.mention_tests(position - 1) else _NONE
    words = replace(words, folder=folder)
    program = words[position]
    if name == "hatch":
        program = program.rpartition(":")[2]
    inner = replace(words, argv=(*words.argv[:position], program, *words.argv[position + 1 :]))
    if module:
        found = _module(inner, program, (position, position))
        # Its module can't be replaced by a script.
        return words.wrapper(start, certain=True) if found.kind == "unittest" else found
    found = _program(inner, position)
    # A script that the project's settings define.
    undefined = found.kind == "none" and bool(TEST_WORD.search(program)) and "/" not in program
    return words.wrapper(start, certain=True) if undefined else found


def _node(words: _Words, position: int) -> TestRunner:
    start, tests = position, False
    while words[position].startswith("-") and words[position] not in ("--", "-"):
        word = words[position]
        if word in ("-e", "--eval", "-p", "--print", "-pe", "-c", "--check"):
            return _NONE
        if word.partition("=")[0] == "--run":
            return words.wrapper(start - 1, certain=True) if words.mention_tests(position) else _NONE
        tests |= word == "--test"
        position += 2 if word in NODE_VALUES else 1
    if tests:
        return words.runner("node", start)
    script = words[position]
    is_test = _is_test_script(f"./{script}", _name(script)) or _name(script).partition(".")[0] in TEST_PROGRAMS
    return words.wrapper(start - 1, certain=True) if is_test else _NONE
