"""What a person agrees to, on few screens: what is particular of each job, and once what the jobs have in common.

Everything that is sealed is shown. What is the same for most of the jobs is said once, and each exception with its job.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from donewhen.cli._pager import Line, Page
from donewhen.cli._terms import criteria_lines, show_changes, show_files, show_terms, term_lines, text_lines
from donewhen.cli._times import moment
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.lifecycle.agreeing import FullProposal
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.own_commands import checking_commands

_COMMON = (
    "stakes",
    "reward_target",
    "max_iterations",
    "truth_mode",
    "truth_checks",
    "execution_log_required",
    "lesson_capture_required",
    "read_only",
)
_SHOWN_APART = frozenset({*_COMMON, "schema", "job", "criteria", "outputs", "work", "needs"})
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CONTINUED = "… "
_NOTHING = ("no execution log", "no lesson", "outputs have to change")
"""What most jobs have in common and nobody needs to read; a job that differs from the others says it."""


def agreement_page(found: Sequence[FullProposal], notes: Mapping[str, Sequence[str]], now: str) -> list[Line]:
    """The lines for these proposals: the project, then what was changed since it was agreed, then new jobs.

    ``notes`` is what is unusual, by chain; ``now`` is the time for *3 days ago*.
    """
    page = Page()
    ordered = sorted(found, key=lambda each: (isinstance(each.terms.plan, Job), each.terms.agreement.seal is None))
    new = [each for each in found if isinstance(each.terms.plan, Job) and each.terms.agreement.seal is None]
    common = _common_terms(new)
    about_files = {each.terms.chain: _file_lines(each) for each in found}
    shared = _shared_lines([about_files[each.terms.chain] for each in found if isinstance(each.terms.plan, Job)])
    for each in ordered:
        _show_proposal(page, each, common, now)
        for note in notes.get(each.terms.chain, ()):
            _say(page, f"  ! {note}", fg="yellow")
        for line in about_files[each.terms.chain]:
            if line not in shared:
                _say(page, line.text, fg=line.fg)
    jobs = sum(isinstance(each.terms.plan, Job) for each in found)
    if common:
        unless = ", unless a job says otherwise" if len(new) > 1 else ""
        what = f"all {len(new)} new jobs" if len(new) > 1 else "this job"
        words = ", ".join(words for words in common.values() if words not in _NOTHING)
        _say(page, f"For {what}{unless}: {words}.")
    if shared:
        page.say(f"For all {jobs} jobs:")
        for line in shared:
            _say(page, line.text, fg=line.fg)
    if jobs:
        _say(page, "Checks see all files outside of these as they are now.", dim=True)
    return page.lines


def _show_proposal(page: Page, found: FullProposal, common: Mapping[str, str], now: str) -> None:
    proposal, seal = found.terms, found.terms.agreement.seal
    for line in text_lines(f"{proposal.chain}  {proposal.plan.title}", "", f"    {_CONTINUED}"):
        page.say(line, bold=True)
    agreement = proposal.agreement
    if seal is not None:
        at = moment(seal.entry.at, now)
        color = "red" if agreement.state == "voided" else "yellow"
        _say(page, f"  {agreement.state}; changes since {seal.entry.who} agreed, {at}:", fg=color)
        changes = Page()
        show_changes(changes, agreement.changes, proposal.place)
        page.lines += (change._replace(text=change.text.removeprefix("  ")) for change in changes.lines)
        return
    if not isinstance(proposal.plan, Job):
        terms = Page()
        show_terms(terms, agreement.terms)
        what = "to be agreed:" if terms.lines else "no settings, judges or criteria of its own"
        _say(page, f"  the project, {agreement.state}; {what}", dim=True)
        for term in terms.lines:
            _say(page, _HASH.sub("its content", term.text.removeprefix("  ")))
        return
    if agreement.state != "proposed":
        page.say(f"  {agreement.state}, to be agreed:", fg="yellow")
    plain = plain_terms(agreement.terms)
    commands = checking_commands(tuple(plain.get("commands") or ()))
    for text in criteria_lines(plain.get("criteria") or (), commands, plain.get("needs") or {}):
        page.say(f"  {text}")
    for name, value in plain.items():
        if name not in _SHOWN_APART:
            for text in term_lines(name, value):
                _say(page, f"  {text}")
    for name, words in _common_words(plain).items():
        if common.get(name) != words:
            instead = f" (instead of {common[name]})" if name in common else ""
            _say(page, f"  ! {words}{instead}", fg="yellow")


def _file_lines(found: FullProposal) -> list[Line]:
    """What is said about files and tests: outputs, what may change, what is unusual about them."""
    plan = found.terms.plan
    if not isinstance(plan, Job):
        return []
    page = Page()
    show_files(page, found)
    return [line._replace(text=f"  {line.text.strip()}") for line in page.lines]


def _shared_lines(lines: Sequence[Sequence[Line]]) -> tuple[Line, ...]:
    """The lines that are the same for each of several jobs."""
    if len(lines) < 2:
        return ()
    counted = Counter(line for each in lines for line in dict.fromkeys(each))
    return tuple(line for line in lines[0] if counted[line] == len(lines))


def _common_terms(new: Sequence[FullProposal]) -> dict[str, str]:
    """The words for the terms that most of the new jobs have in common."""
    found = [_common_words(plain_terms(each.terms.agreement.terms)) for each in new]
    if not found:
        return {}
    return {name: Counter(words[name] for words in found).most_common(1)[0][0] for name in found[0]}


def _common_words(plain: Mapping[str, Any]) -> dict[str, str]:
    """The terms that most jobs have in common, in words."""
    checks = ", ".join(plain["truth_checks"]).replace("_", " ")
    mode = plain["truth_mode"]
    return {
        "stakes": f"stakes {plain['stakes']}",
        "reward_target": f"needs {plain['reward_target']} of 100 points",
        "max_iterations": f"{plain['max_iterations']} iterations",
        "truth_mode": f"truth checks {mode} ({checks})" if checks else f"truth checks {mode}",
        "execution_log_required": "an execution log" if plain["execution_log_required"] else _NOTHING[0],
        "lesson_capture_required": "a lesson" if plain["lesson_capture_required"] else _NOTHING[1],
        "read_only": "read only: outputs need not change" if plain["read_only"] else _NOTHING[2],
    }


def _say(page: Page, text: str, *, bold: bool = False, fg: str | None = None, dim: bool = False) -> None:
    """Add a line, broken between words. What follows its first line begins with a mark, and so looks like no check."""
    indent = text[: len(text) - len(text.lstrip())]
    for line in _lines_of(text, indent):
        page.say(line, bold=bold, fg=fg, dim=dim)


def _lines_of(text: str, indent: str) -> Iterator[str]:
    yield from text_lines(text.strip(), indent, f"{indent}  {_CONTINUED}")
