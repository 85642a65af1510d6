"""Any two agreements: nothing gets lost between them unseen, and nothing that asks for more is ever an alarm."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from donewhen.config.settings import ApprovalSettings, GuardSettings, JobSettings, Settings, TestSettings
from donewhen.jobs.contract.terms import (
    TermsChange,
    compare_terms,
    job_terms,
    normal_command,
    project_terms,
    terms_hash,
)
from donewhen.jobs.ledger.terms_content import JOB_TERMS, PROJECT_TERMS, JobTerms, ProjectTerms
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import STAKES, read_job, read_project
from donewhen_kit import examples

QUICK = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)

ORDERED = (
    "stakes",
    "reward_target",
    "max_iterations",
    "truth_mode",
    "execution_log_required",
    "lesson_capture_required",
    "read_only",
    "hooks_switched_off",
)
LISTS = ("criteria", "outputs", "verification_evidence", "commands", "depends_on", "truth_checks", "hooks")
GUARDS = ("stop", "subagent_stop", "task_completed")

words = st.sampled_from(["a", "b", "c", "d"])
lists = st.sets(words, max_size=3).map(sorted)
names = st.sampled_from(["x", "y"])


@st.composite
def baselines(draw: st.DrawFn) -> dict[str, list[str]]:
    executed = draw(st.sets(words))
    return {"executed": sorted(executed), "skipped": sorted(draw(st.sets(words)) - executed)}


setting_values: dict[str, st.SearchStrategy[Any]] = {
    **{f"{guard}.{name}": lists for guard in GUARDS for name in ("files", "commands", "pass_env")},
    **{f"{guard}.{name}": st.integers(1, 3) for guard in GUARDS for name in ("max_stalled", "max_attempts")},
    **{f"{guard}.{name}": st.sampled_from([1.0, 300.0, 2000.0]) for guard in GUARDS for name in ("check_timeout",)},
    "stop.tests.run": words,
    "stop.tests.baseline": words,
    "jobs.command_timeout": st.sampled_from([1.0, 2000.0]),
    "jobs.pass_env": lists,
    "approval.ci": st.just(True),
    "approval.keys": lists,
}
terms = st.fixed_dictionaries(
    {
        **dict.fromkeys(LISTS, lists),
        "inputs": lists,
        "stakes": st.sampled_from(STAKES),
        "reward_target": st.integers(0, 100),
        "max_iterations": st.integers(0, 9),
        "truth_mode": st.sampled_from(["strict", "off"]),
        "exemptions": st.dictionaries(names, words),
        "baselines": st.dictionaries(names, baselines()),
        "settings": st.fixed_dictionaries({}, optional=setting_values),
        **{
            name: st.booleans()
            for name in ("execution_log_required", "lesson_capture_required", "read_only", "hooks_switched_off")
        },
    }
)


_OF_PROJECTS = ("hooks", "hooks_switched_off", "baselines", "settings")


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[TermsChange, ...]:
    """The changes of a job and of a project that have these terms between them."""
    jobs, projects = zip(*map(_job_and_project, (before, after)), strict=True)
    return (*compare_terms(*jobs), *compare_terms(*projects))


def _job_and_project(values: Mapping[str, Any]) -> tuple[JobTerms, ProjectTerms]:
    job = {name: value for name, value in values.items() if name not in _OF_PROJECTS}
    project = {name: values[name] for name in _OF_PROJECTS}
    return (
        msgspec.convert({**job, "schema": JOB_TERMS, "job": "WI-1"}, JobTerms),
        msgspec.convert({**project, "schema": PROJECT_TERMS, "project": "PJ-1", "criteria": []}, ProjectTerms),
    )


def voided(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {term.field for term in compared(before, after) if term.voids}


@QUICK
@given(terms)
def test_nothing_has_changed_between_terms_and_themselves(one: dict[str, Any]) -> None:
    assert compared(one, one) == ()


@QUICK
@given(terms, terms)
def test_whatever_differs_is_seen(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = {change.field.partition(".")[0] for change in compared(one, other)}
    differing = {name for name in one if one[name] != other[name]}
    # The first command takes over the criteria that a person decides, which is a change of theirs.
    taken_over = {"criteria"} if bool(one["commands"]) != bool(other["commands"]) else set()
    assert found <= differing | taken_over
    assert differing - found <= {"settings"}
    assert found ^ {change.field.partition(".")[0] for change in compared(other, one)} <= taken_over
    for name in ORDERED:
        if one[name] != other[name]:
            assert (name in voided(one, other)) is not (name in voided(other, one))
    if found:
        assert voided(one, other) or voided(other, one)


@st.composite
def tightened(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Terms, and terms that ask for at least as much in every way."""
    one: dict[str, Any] = draw(terms)
    other = dict(one)
    for name in LISTS:
        other[name] = sorted({*one[name], *draw(lists)})
    other["inputs"] = draw(st.sampled_from([[], sorted({*one["inputs"], *draw(lists)})])) if one["inputs"] else []
    other["stakes"] = STAKES[draw(st.integers(STAKES.index(one["stakes"]), len(STAKES) - 1))]
    other["reward_target"] += draw(st.integers(0, 5))
    other["max_iterations"] = draw(st.integers(0, one["max_iterations"]))
    other["truth_mode"] = draw(st.sampled_from([one["truth_mode"], "strict"]))
    for name in ("execution_log_required", "lesson_capture_required"):
        other[name] = one[name] or draw(st.booleans())
    for name in ("read_only", "hooks_switched_off"):
        other[name] = one[name] and draw(st.booleans())
    gone = draw(st.sets(names))
    other["exemptions"] = {name: why for name, why in one["exemptions"].items() if name not in gone}
    grown = {}
    for name, old in one["baselines"].items():
        executed = {*old["executed"], *draw(st.sets(words))}
        skipped = {*old["skipped"], *draw(st.sets(words))} - executed
        grown[name] = {"executed": sorted(executed), "skipped": sorted(skipped)}
    other["baselines"] = {**draw(st.dictionaries(names, baselines())), **grown}
    more: dict[str, Any] = dict(one["settings"])
    for name, value in one["settings"].items():
        last = name.rpartition(".")[2]
        if last in ("files", "commands"):
            more[name] = [*draw(lists), *value]
        elif last in ("pass_env", "keys"):
            more[name] = [item for item in value if item not in draw(lists)]
        elif last in ("max_stalled", "max_attempts"):
            more[name] = value + draw(st.integers(0, 5))
        elif last.endswith("timeout"):
            more[name] = value / draw(st.integers(1, 5))
        elif last == "ci" and draw(st.booleans()):
            del more[name]
    if "task_completed.files" not in more:
        more["task_completed.files"] = draw(lists)
    other["settings"] = more
    if not one["commands"]:
        # The first command takes over the criteria that a person decides, which loosens them.
        other["commands"] = []
    return one, other


@QUICK
@given(tightened())
def test_what_asks_for_more_in_every_way_never_voids_and_its_undoing_always_does(
    pair: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    one, other = pair
    assert voided(one, other) == set()
    back = voided(other, one)
    for name in ORDERED:
        assert (name in back) is (one[name] != other[name])
    for name in LISTS:
        assert (name in back) is (one[name] != other[name])
    assert bool(back) is bool(compared(one, other))


@QUICK
@given(terms, terms, terms)
def test_no_detour_leads_around_an_alarm(one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]) -> None:
    """Field by field: what can be had in two steps without an alarm can be had in one."""
    direct = voided(one, three)
    stepwise = voided(one, two) | voided(two, three)
    assert direct <= stepwise


# Written down in another way.

plain = st.text("abcxyz", min_size=2, max_size=6)
sentences = st.lists(plain, min_size=2, max_size=4)
gaps = st.sampled_from([" ", "  ", "\t", " \t "])
commands = st.lists(st.sampled_from(["pytest", "-q", "'a b'", '"c  d"', "x\\ y", "''"]), min_size=1, max_size=4)


def plan(criteria: list[str], outputs: list[str], lines: list[str]) -> str:
    listed = "".join(f"\n  - {output}" for output in outputs) or " []"
    run = "".join(f"\n  - '{line.replace(chr(39), chr(39) * 2)}'" for line in lines) or " []"
    head = f"work_item_id: WI-20260214-001\noutputs:{listed}\ntruth_required_commands:{run}"
    return f"---\n{head}\n---\n\n## Acceptance Criteria\n\n" + "".join(criteria)


def hash_of(text: str) -> str:
    return terms_hash(
        job_terms(read_job(parse_document(text.encode(), "plan.md"), Path("/w/WI-20260214-001-x/plan.md"), "x"))
    )


@QUICK
@given(
    st.lists(st.tuples(sentences, st.none() | commands), max_size=4, unique_by=str),
    st.lists(plain, max_size=4, unique=True),
    st.lists(commands, max_size=3),
    st.randoms(use_true_random=False),
    st.data(),
)
def test_order_white_space_ids_and_marks_never_change_the_hash(
    criteria: list[tuple[list[str], list[str] | None]],
    outputs: list[str],
    lines: list[list[str]],
    chance: random.Random,
    data: st.DataObject,
) -> None:
    def item(said: list[str], check: list[str] | None, mark: str, gap: str) -> str:
        return f"{mark}{gap.join(said)}\n" + (f"  check: run{gap}{gap.join(check)}\n" if check else "")

    one = plan([item(*each, "- ", " ") for each in criteria], outputs, [" ".join(each) for each in lines])
    marks = [f"{bullet} {box}{name}" for bullet in "-*+" for box in ("", "[ ] ", "[x] ") for name in ("", "AC-{}: ")]
    other_items = [
        item(*each, data.draw(st.sampled_from(marks)).format(90 + number), data.draw(gaps))
        for number, each in enumerate(criteria)
    ]
    other_lines = [data.draw(gaps).join(each) for each in lines]
    for shuffled in (other_items, outputs, other_lines):
        chance.shuffle(shuffled)
    assert hash_of(plan(other_items, outputs, other_lines)) == hash_of(one)


@QUICK
@given(commands, commands)
def test_two_commands_are_the_same_when_their_words_are(one: list[str], other: list[str]) -> None:
    same = normal_command(" ".join(one)) == normal_command("  ".join(other))
    assert same is (one == other)
    assert normal_command(normal_command(" ".join(one))) == normal_command(" ".join(one))


def _leaves() -> list[tuple[str, Settings, Settings]]:
    """Every setting there is, in two settings that differ in nothing else."""
    other: dict[str, Any] = {"float": 7.0, "int": 7, "bool": True, "tuple[str, ...]": ("other",)}
    other["Level | None"] = "landlock"
    other["SignExceptions"] = ("/src/plugin/**: frames",)
    other["ProbingTime"] = 7.0
    other["RequireJob"] = "off"
    other |= dict.fromkeys(("str", "str | None"), "other")
    tests = TestSettings("pytest")
    guard = GuardSettings(tests=tests)
    base = Settings(guard, guard, guard, JobSettings(), ApprovalSettings(), root=Path("/nowhere"))
    found = []
    for table in fields(Settings):
        if not table.metadata.get("setting", True):
            continue
        whole = getattr(base, table.name)
        for field in fields(whole):
            if field.name == "tests":
                for inner in fields(tests):
                    changed = replace(whole, tests=replace(tests, **{inner.name: other[str(inner.type)]}))
                    name = f"{table.name}.tests.{inner.name}"
                    found.append((name, base, replace(base, **{table.name: changed})))
            else:
                changed = replace(whole, **{field.name: other[str(field.type)]})
                found.append((f"{table.name}.{field.name}", base, replace(base, **{table.name: changed})))
    return found


@pytest.mark.parametrize(("name", "base", "other"), [pytest.param(*leaf, id=leaf[0]) for leaf in _leaves()])
def test_no_setting_can_be_changed_forth_and_back_unseen(name: str, base: Settings, other: Settings) -> None:
    text = b"---\nid: PJ-20260214-001\n---\n"
    project = read_project(parse_document(text, "plan.md"), Path("/w/jobs/plan.md"), "plan.md")
    one, two = project_terms(project, base), project_terms(project, other)
    forth, back = compare_terms(one, two), compare_terms(two, one)
    assert {change.field for change in (*forth, *back)} == {f"settings.{name}"}
    assert any(change.voids for change in (*forth, *back))
