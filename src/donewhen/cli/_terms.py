"""How terms are shown to the person who agrees to them.

The text of a criterion may be written by an agent, so it always stands behind a bar, and what checks it on a line of
its own without one. Long lines are broken here and not by the terminal: no text can look like a check.
"""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from donewhen.cli._pager import Says
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import join_limited, one_line, plain_text
from donewhen.jobs.contract.terms import Terms, TermsChange, split_criterion_term
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.lifecycle.agreeing import FullProposal
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.own_commands import checking_commands, own_command
from donewhen.test_reports.test_runners import runner_of

_MARKS = {"added": ("+", "green"), "tightened": ("▲", "green"), "loosened": ("▼", "red"), "removed": ("-", "red")}
_BAR, _CHECK, _NEEDS = "│ ", "└ checked by: ", "└ needs: "
_PERSON = "a person"
_CHANGE = len("- removed   criteria: ")
_WIDTH, _MIN_WIDTH = 100, 40
_MAX_NAMES = 8


def show_terms(output: Says, terms: Terms) -> None:
    """Print all terms."""
    plain = plain_terms(terms)
    commands = checking_commands(tuple(plain.get("commands") or ()))
    needs = plain.get("needs") or {}
    for name, value in plain.items():
        if name in ("schema", "job", "project", "needs"):
            continue
        lines = _criteria(value, commands, needs) if name == "criteria" else _lines(name, value)
        for line in lines:
            output.say(f"    {line}")


def show_changes(output: Says, changes: Iterable[TermsChange], place: Callable[[TermsChange], str]) -> None:
    """Print each change with its location."""
    for change in changes:
        mark, color = _MARKS[change.kind]
        if change.field == "criteria":
            terms = [term for term in (change.before, change.after) if term is not None]
            first, *rest = (line for term in terms for line in _criterion(term, "", _CHANGE))
            output.say(f"    {mark} {change.kind.ljust(9)} {change.field}: {first.removeprefix(_BAR)}", fg=color)
            for line in rest:
                output.say(f"      {line}", fg=color)
        else:
            message = " → ".join(part for part in (change.before, change.after) if part is not None)
            output.say(f"    {mark} {change.kind.ljust(9)} {change.field}: {message}", fg=color)
        output.say(f"      {place(change)}", dim=True)


def show_files(output: Says, found: FullProposal) -> None:
    """Print which files may change, and what is known about the files and tests as they are."""
    if not isinstance(found.terms.plan, Job):
        return
    area = found.terms.plan
    besides = [pattern for pattern in area.work or () if pattern not in area.outputs]
    outputs = f"outputs: {', '.join(area.outputs)}; may also change: " if area.outputs else "no outputs; may change: "
    output.say(f"  {outputs}{', '.join(besides) or 'nothing'}")
    now = found.now
    if now.judged_inside:
        output.say(f"    ! stays as it is although it is in the work area: {_names(now.judged_inside)}", fg="yellow")
    if now.begun:
        output.say(f"    ! counts as work that has begun: {_names(now.begun)}", fg="yellow")
    if now.untracked:
        output.say(f"    ! never committed, so not part of the agreement: {_names(now.untracked)}", fg="yellow")
    if now.of_others:
        output.say(f"    ! not committed, and part of other jobs: {_names(now.of_others)}", fg="yellow")
    if now.ahead:
        output.say(f"    ! differs from the branch on the server: {_names(now.ahead)}", fg="yellow")
    for name in sorted({key.rpartition(".")[0] for key in now.tree.filters}):
        commands = (f"{key.rpartition('.')[2]} `{text}`" for key, text in now.tree.filters.items() if _is_of(key, name))
        output.say(f"    filter {one_line(name, 100)}: {one_line(', '.join(commands), 300)}")
    for note in now.notes:
        output.say(f"    ! {note}", fg="yellow")
    for name, baseline in found.baselines.items():
        counted = (
            f"{baseline.tests} test{'' if baseline.tests == 1 else 's'}"
            if baseline.tests
            else baseline.why or "no tests yet"
        )
        output.say(f"    tests now: {counted} in `{name}`")
        if baseline.tests and baseline.controls not in ("", "held"):
            output.say(f"    ! no controls in these tests: {one_line(baseline.controls, 300)}", fg="yellow")
    for name, tests in found.lost_tests.items():
        gone = f"{len(tests)} test(s) of the earlier agreement are gone in `{name}`: {_names(tests)}"
        output.say(f"    ! {gone}", fg="yellow")
    if found.needed_by_stakes is not None:
        output.say(
            f"    needs: {found.needed_by_stakes} evidence for each criterion, because its stakes are {area.stakes}"
        )
    for sentence in found.unreachable:
        output.say(f"    ! {one_line(sentence, 600)}", fg="yellow")
    for requirement in _runs(area):
        runner = runner_of(requirement)
        if runner.unknown:
            output.say(f"    ! {runner.unknown}", fg="yellow")


def _is_of(key: str, name: str) -> bool:
    return key.rpartition(".")[0] == name


def _runs(job: Job) -> Iterator[Sequence[str]]:
    with suppress(DonewhenError):
        yield from (found.check.argv for found in requirements_of(job) if found.check.kind == "run")


def _names(names: Sequence[str]) -> str:
    return join_limited([one_line(name, 100) for name in names], _MAX_NAMES)


def criteria_lines(terms: Sequence[str], commands: Sequence[str], needs: Mapping[str, str]) -> Iterator[str]:
    """The criteria, each behind a bar and with its check on a line of its own."""
    for term in terms:
        yield from _criterion(term, "the commands of the job" if commands else _PERSON)
        if term in needs:
            yield f"{_NEEDS}{needs[term]} evidence"


def text_lines(text: str, first: str, rest: str) -> Iterator[str]:
    """A text in lines that the terminal does not break; ``rest`` begins each line after the first."""
    begin = first
    for line in _broken(text, len(first)):
        yield f"{begin}{line}"
        begin = rest


def _criteria(terms: Sequence[str], commands: Sequence[str], needs: Mapping[str, str]) -> Iterator[str]:
    if terms:
        yield "criteria:"
    yield from (f"  {line}" for line in criteria_lines(terms, commands, needs))


def _criterion(term: str, otherwise: str, indent: int = len(_BAR)) -> Iterator[str]:
    """A criterion and its check; ``otherwise`` is what decides it if it has none."""
    text, check = split_criterion_term(term)
    yield from (f"{_BAR}{line}" for line in _broken(text, indent))
    decides = _PERSON if check == "manual" else check or otherwise
    if not decides:
        return
    first, *rest = _broken(decides, len(_CHECK))
    yield f"{_CHECK}{first}"
    yield from (f"{' ' * len(_CHECK)}{line}" for line in rest)


def _broken(text: str, indent: int) -> Iterator[str]:
    """A text in lines that the terminal does not break."""
    width = max(_MIN_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns - 8 - indent)
    line, used = "", 0
    for character in " ".join(plain_text(text).split()):
        columns = 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used + columns > width:
            # Between two words, if there is a space in the second half of the line.
            cut = line.rfind(" ", len(line) // 2) + 1 or len(line)
            yield line[:cut].rstrip()
            line = line[cut:]
            used = sum(2 if unicodedata.east_asian_width(other) in "WF" else 1 for other in line)
        line, used = line + character, used + columns
    yield line


def _note(name: str, item: Any) -> str:
    return "  (answered by the gates, not run)" if name == "commands" and own_command(str(item)) is not None else ""


def term_lines(name: str, value: Any) -> Iterator[str]:
    """A term other than the criteria; nothing if it is empty."""
    yield from _lines(name, value)


def _lines(name: str, value: Any) -> Iterator[str]:
    title = name.replace("_", " ")
    if isinstance(value, list):
        if value:
            yield f"{title}:"
            yield from (f"  {item}{_note(name, item)}" for item in value)
    elif name == "missions":
        for mission, terms in value.items():
            yield f"judge {mission}:"
            yield from (f"  {key.replace('_', ' ')} = {_short(item)}" for key, item in terms.items() if item)
    elif isinstance(value, dict):
        if value:
            yield f"{title}:"
            yield from (f"  {key} = {_short(item)}" for key, item in value.items())
    elif value is not False:
        yield f"{title}: {value}"


def _short(value: Any) -> str:
    if isinstance(value, dict) and "executed" in value:
        return f"{len(value['executed'])} tests, {len(value['skipped'])} skipped"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_short(item)}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
