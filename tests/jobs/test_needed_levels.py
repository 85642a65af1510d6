"""How strong the evidence for a criterion has to be: in the plan, in the terms, and at the agreement."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.contract.agreement_notes import agreement_notes
from donewhen.jobs.contract.terms import compare_terms, criterion_term, job_terms, project_terms, terms_hash
from donewhen.jobs.ledger.entry_content import AgreedBaseline, AgreedEnvironment
from donewhen.jobs.ledger.terms_content import JobTerms, plain_terms
from donewhen.jobs.lifecycle.reachable_levels import unreachable_levels
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import Criterion, find_section, read_criteria
from donewhen.jobs.plan.job import Job

RUN = "It works.\n  check: run sh check.sh"
TESTS = "The tests pass.\n  check: run pytest -q"
HERE = AgreedEnvironment(isolation="namespaces", network="own")


def criteria(*lines: str) -> tuple[Criterion, ...]:
    body = "\n".join(("# Job", "## Acceptance criteria", *lines))
    return read_criteria(find_section(body, "Acceptance criteria"), "plan.md")


def job(tmp_path: Path, *given: str, **fields: object) -> Job:
    workspace = create_project(tmp_path, "Demo")
    made = add_job(workspace, "Job", criteria=given)
    if fields:
        workspace.write(workspace.read(made.path), made.path, fields)  # type: ignore[arg-type]
    return workspace.job(made.id)


@pytest.mark.parametrize("line", ["  needs: strong", "  - needs: strong", "\tneeds:strong", "   * NEEDS:  Strong  "])
def test_a_criterion_says_what_it_needs_on_a_line_of_its_own(line: str) -> None:
    (before, after) = criteria("- One", line, "  check: run make", "- Two", "  check: run make")
    assert (before.text, before.needs, before.check is not None) == ("One", "strong", True)
    assert (after.text, after.needs) == ("Two", None)


@pytest.mark.parametrize("line", ["  needs: a database", "  needs: stong", "  needs:", "  It needs: strong"])
def test_other_lines_are_text_as_they_always_were(line: str) -> None:
    (found,) = criteria("- One", line)
    assert (found.text, found.needs) == (f"One {line.strip()}", None)


def test_a_level_in_a_code_block_or_in_a_comment_is_none() -> None:
    (found,) = criteria("- One", "  ```", "  needs: strong", "  ```", "<!--", "  needs: fair", "-->")
    assert found.needs is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["- One", "  needs: fair", "  needs: strong"], "more than one level"),
        (["- One", "needs: fair"], "belongs to no criterion"),
        (["  needs: fair", "- One"], "belongs to no criterion"),
        (["- needs: fair"], "belongs to no criterion"),
    ],
)
def test_a_level_that_belongs_to_no_criterion_or_is_said_twice_is_an_error(lines: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        criteria(*lines)


def test_a_word_that_looks_like_a_level_is_noted_at_the_agreement(tmp_path: Path) -> None:
    made = job(tmp_path, "It works and\n  needs: stong", "It needs: Docker to be there")
    workspace = create_project(tmp_path / "other", "Demo")
    notes = [note for note in agreement_notes(workspace, made) if "levels are" in note]
    assert len(notes) == 1
    assert "AC-1" in notes[0] and "stong" in notes[0] and "fair, strong" in notes[0]


def test_terms_without_a_level_are_as_they_were(tmp_path: Path) -> None:
    """The hashes of contracts that ask for nothing stay the same."""
    terms = job_terms(job(tmp_path, RUN))
    assert "needs" not in plain_terms(terms)
    workspace = create_project(tmp_path / "other", "Demo")
    assert "needs" not in plain_terms(project_terms(workspace.project(), workspace.settings()))


def test_levels_are_part_of_the_terms(tmp_path: Path) -> None:
    made = job(tmp_path, RUN, f"{TESTS}\n  needs: strong", f"{RUN}\n  needs: fair")
    terms = job_terms(made)
    assert terms.needs == {criterion_term(made.criteria[0]): "fair", criterion_term(made.criteria[1]): "strong"}
    assert msgspec.convert(plain_terms(terms), JobTerms) == terms
    assert terms_hash(msgspec.convert(plain_terms(terms), JobTerms)) == terms_hash(terms)


def test_a_lower_level_loosens_and_a_higher_one_tightens(tmp_path: Path) -> None:
    """Whatever the other criteria do."""
    made = {
        level: job_terms(job(tmp_path / level, f"{RUN}\n  needs: {level}" if level != "any" else RUN))
        for level in ("any", "fair", "strong")
    }
    order = ["any", "fair", "strong"]
    for before in order:
        for after in order:
            changes = compare_terms(made[before], msgspec.structs.replace(made[after], job=made[before].job))
            kinds = [change.kind for change in changes]
            tighter = order.index(after) > order.index(before)
            assert kinds == ([] if before == after else ["tightened"] if tighter else ["loosened"])
            assert all(change.voids != tighter and change.field == "needs" for change in changes)


def test_the_level_of_a_new_or_a_removed_criterion_is_no_change_of_its_own(tmp_path: Path) -> None:
    one, two = job_terms(job(tmp_path / "a", RUN)), job_terms(job(tmp_path / "b", RUN, f"{TESTS}\n  needs: strong"))
    two = msgspec.structs.replace(two, job=one.job)
    assert [(change.kind, change.field) for change in compare_terms(two, one)] == [("removed", "criteria")]
    assert [(change.kind, change.field) for change in compare_terms(one, two)] == [
        ("added", "criteria"),
        ("tightened", "needs"),
    ]


@pytest.mark.parametrize(
    ("criterion", "baseline", "environment", "at_most"),
    [
        ("{tests}", AgreedBaseline(tests=2, controls="held"), HERE, None),
        ("{tests}", None, HERE, None),
        ("{tests}", AgreedBaseline(why="it timed out"), HERE, None),
        ("{tests}", AgreedBaseline(), HERE, "at most fair"),
        ("{tests}", AgreedBaseline(tests=2, controls="its tests run elsewhere"), HERE, "its tests run elsewhere"),
        ("{tests}", None, AgreedEnvironment(isolation="landlock", network="host"), "only by landlock"),
        ("{tests}", None, None, "at most fair"),
        ("The cases pass.\n  check: run python -m unittest", None, HERE, "alone or in another order"),
        ("It works.\n  check: run make test", None, HERE, "lists no tests"),
        ("It is there.\n  check: file /a.md", None, HERE, "at most weak"),
        ("It is right.\n  check: file /a.md matches /a/", None, HERE, "at most fair"),
        ("It is good.\n  check: judge tone", None, HERE, "A judge"),
        ("A person looks at it.\n  check: manual", None, HERE, None),
    ],
)
def test_levels_that_can_not_be_reached_are_reported(
    tmp_path: Path,
    criterion: str,
    baseline: AgreedBaseline | None,
    environment: AgreedEnvironment | None,
    at_most: str | None,
) -> None:
    made = job(tmp_path, criterion.replace("{tests}", TESTS) + "\n  needs: strong")
    baselines = {} if baseline is None else {"pytest -q": baseline}
    found = list(unreachable_levels(made, baselines, environment))
    assert len(found) == (at_most is not None)
    if at_most is not None:
        assert found[0].startswith("AC-1 needs strong evidence")
        assert at_most in found[0]


def test_the_stakes_ask_for_levels_too(tmp_path: Path) -> None:
    exists = "It is there.\n  check: file /a.md"
    assert not list(unreachable_levels(job(tmp_path / "normal", exists, RUN), {}, HERE))
    (sentence,) = unreachable_levels(job(tmp_path / "high", exists, RUN, stakes="high"), {}, HERE)
    assert "AC-1 needs fair evidence" in sentence
    critical = job(tmp_path / "critical", exists, RUN, stakes="critical")
    assert [sentence[:4] for sentence in unreachable_levels(critical, {}, HERE)] == ["AC-1", "AC-2"]


def test_a_criterion_without_a_check_is_as_good_as_the_commands_of_the_job(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Demo")
    made = add_job(workspace, "Job", criteria=["It works.\n  needs: strong"], commands=["pytest -q", "make lint"])
    (sentence,) = unreachable_levels(made, {}, HERE)
    assert "lists no tests" in sentence


def test_with_truth_mode_off_everything_is_only_asserted(tmp_path: Path) -> None:
    made = job(tmp_path, f"{RUN}\n  needs: fair", truth_mode="off")
    (sentence,) = unreachable_levels(made, {}, HERE)
    assert "at most only asserted" in sentence
