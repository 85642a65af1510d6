"""What belongs to the terms of a job and of a project, and what each later edit of them is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from donewhen.config.loader import load
from donewhen.config.settings import GuardSettings, Settings, TestSettings
from donewhen.jobs.contract.terms import (
    Terms,
    TermsChange,
    compare_terms,
    job_terms,
    normal_command,
    project_terms,
    terms_hash,
)
from donewhen.jobs.ledger.terms_content import ProjectTerms
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import Job, Project, read_job, read_project
from donewhen.test_reports.suite_baseline import SuiteBaseline
from sentences import assert_sentences

SOME_CRITERIA = "- AC-1: The log is parsed.\n  check: run pytest -q 'a b'\n- AC-2: It is fast.\n"


def job(frontmatter: str = "", criteria: str = SOME_CRITERIA) -> Job:
    text = f"---\nwork_item_id: WI-20260214-001\n{frontmatter}\n---\n\n## Acceptance Criteria\n\n{criteria}"
    return read_job(parse_document(text.encode(), "plan.md"), Path("/w/jobs/WI-20260214-001-x/plan.md"), "plan.md")


def project(criteria: str = "- AC-1: Users are happy.\n", frontmatter: str = "") -> Project:
    text = f"---\nkind: project\nid: PJ-20260214-001\n{frontmatter}\n---\n\n## Acceptance Criteria\n\n{criteria}"
    return read_project(parse_document(text.encode(), "plan.md"), Path("/w/jobs/plan.md"), "plan.md")


def brief(before: Terms, after: Terms) -> list[tuple[str, str]]:
    return [(term.kind, term.field) for term in compare_terms(before, after)]


def edited(before: str, after: str) -> list[tuple[str, str]]:
    """The changes that an edit of a job's frontmatter makes."""
    return brief(job_terms(job(before)), job_terms(job(after)))


def rewritten(before: str, after: str) -> list[tuple[str, str | None]]:
    """The changes that an edit of a job's criteria makes."""
    found = compare_terms(job_terms(job(criteria=before)), job_terms(job(criteria=after)))
    assert {change.field for change in found} <= {"criteria"}
    return [(change.kind, change.before if change.after is None else change.after) for change in found]


@pytest.mark.parametrize(
    "criteria",
    [
        "- AC-2: It is fast.\n- AC-1: The log is parsed.\n  check: run pytest -q 'a b'\n",
        "- AC-7: The log is parsed.\n  check: run pytest -q 'a b'\n- X1: It is fast.\n",
        "- The log is parsed.\n  check: run pytest -q 'a b'\n- It is fast.\n",
        "* [x] AC-1:   The log\n  is\tparsed.\n\n   - check:  run   pytest  -q  'a b'  \n+ [ ] AC-2: It is  fast.\n",
        '- AC-1: The log is parsed.\n  check: run pytest -q "a b"\n- AC-2: It is fast.\n',
        "- AC-1: The log is parsed.\n  check: run pytest -q a\\ b\n- AC-2: It is fast.\n",
        f"{SOME_CRITERIA}- AC-3: It is fast.\n",
        f"Some prose.\n\n{SOME_CRITERIA}\nMore prose.\n",
    ],
    ids=["order", "other ids", "no ids", "white space and marks", "quotes", "backslash", "said twice", "prose"],
)
def test_the_same_criteria_written_in_another_way_have_the_same_hash(criteria: str) -> None:
    assert terms_hash(job_terms(job(criteria=criteria))) == terms_hash(job_terms(job()))


@pytest.mark.parametrize(
    "frontmatter",
    [
        "title: Another",
        "status: in_progress\niteration: 2\nrework_count: 1\nstarted_at: 2026-02-14T10:00:00Z",
        "priority: 1\nestimate_hours: 9\ndue_date: 2026-03-01\nwave_id: 4",
        "reward_last_score: 12\ntruth_last_status: fail\nagreement_status: agreed\nagreed_by: somebody",
        "mine: [1, 2]",
        "stakes: normal\nreward_target: 80\nmax_iterations: 3\ntruth_mode: strict\nread_only: false",
        "outputs: [outputs/primary.md]\nverification_evidence: [artifacts/verification.md]\ninputs: []\ndepends_on: []",
        "truth_checks: [verification_consistency, freshness, exists_nonempty, freshness]",
        "execution_log_required: yes\nlesson_capture_required: true\nexecution_log_exemption_reason: ''",
    ],
)
def test_what_was_not_agreed_or_says_the_default_does_not_count(frontmatter: str) -> None:
    assert terms_hash(job_terms(job(frontmatter))) == terms_hash(job_terms(job()))


def test_the_order_and_the_white_space_of_lists_do_not_count() -> None:
    first = job("outputs: [a.md, b.md]\ndepends_on: [X, Y]\ntruth_required_commands: ['make  check', 'pytest -q']")
    other = job("outputs:\n- b.md\n- a.md\ndepends_on: [Y, X]\ntruth_required_commands: [\"pytest '-q'\", make check]")
    assert terms_hash(job_terms(first)) == terms_hash(job_terms(other))
    assert compare_terms(job_terms(first), job_terms(other)) == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("grep 'a b' x", "grep 'a  b' x"),
        ("grep ' a' x", "grep a x"),
        ("grep a b", "grep 'a b'"),
        ("grep ''", "grep"),
        ("pytest", "Pytest"),
    ],
)
def test_white_space_inside_the_words_of_a_command_does_count(before: str, after: str) -> None:
    assert normal_command(before) != normal_command(after)
    assert edited(f'truth_required_commands: ["{before}"]', f'truth_required_commands: ["{after}"]') == [
        ("removed", "commands"),
        ("added", "commands"),
    ]
    assert [kind for kind, _ in rewritten(f"- x y\n  check: run {before}\n", f"- x y\n  check: run {after}\n")] == [
        "removed",
        "added",
    ]


@pytest.mark.parametrize("command", ["a | b", "'open", "", "a  &&  b"], ids=["pipe", "quote", "empty", "operator"])
def test_a_command_that_can_not_be_run_stays_as_it_is(command: str) -> None:
    assert normal_command(command) == command


def test_white_space_inside_a_pattern_does_count() -> None:
    before, after = "- x y\n  check: file a matches /a  b/\n", "- x y\n  check: file a matches /a b/\n"
    assert [kind for kind, _ in rewritten(before, after)] == ["removed", "added"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("file a  matches   /a b/", "file a matches /a b/"),
        ("file a.csv rows>=3", "file a.csv rows >= 3"),
        ("file  a.json  schema  s.json", "file a.json schema s.json"),
        ("judge   review", "judge review"),
    ],
    ids=["pattern", "rows", "schema", "judge"],
)
def test_white_space_around_the_words_of_a_check_does_not_count(before: str, after: str) -> None:
    assert rewritten(f"- x y\n  check: {before}\n", f"- x y\n  check: {after}\n") == []


def test_prose_that_reads_like_a_check_is_no_check() -> None:
    found = rewritten("- It works.\n  check: run pytest\n", "- It works. [check: run pytest]\n")
    assert [kind for kind, _ in found] == ["removed", "added"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- It is fast.\n", "- It is quick.\n"),
        ("- It is fast.\n", "- it is fast.\n"),
        ("- It is fast.\n  check: run pytest\n", "- It is fast.\n"),
        ("- It is fast.\n", "- It is fast.\n  check: manual\n"),
        ("- It is fast.\n  check: manual\n", "- It is fast.\n  check: judge speed\n"),
        ("- It is fast.\n  check: judge a\n", "- It is fast.\n  check: judge b\n"),
        ("- It is fast.\n  check: run pytest a\n", "- It is fast.\n  check: run pytest b\n"),
        ("- It is fast.\n  check: file a\n", "- It is fast.\n  check: file b\n"),
        ("- It is fast.\n  check: file a rows >= 3\n", "- It is fast.\n  check: file a rows >= 2\n"),
    ],
    ids=["words", "case", "check gone", "check new", "other kind", "mission", "command", "file", "rows"],
)
def test_a_criterion_that_changed_in_any_way_was_removed_and_another_added(before: str, after: str) -> None:
    found = rewritten(before, after)
    assert [kind for kind, _ in found] == ["removed", "added"]
    assert found[0][1] != found[1][1]


def test_a_criterion_is_told_in_its_own_words_with_its_check() -> None:
    assert rewritten("- It is fast.\n", "- It is fast.\n- It works.\n  check: run  pytest  -q\n") == [
        ("added", "It works. [check: run pytest -q]")
    ]
    assert rewritten("- It is fast.\n- By hand.\n  check: manual\n", "- It is fast.\n") == [
        ("removed", "By hand. [check: manual]")
    ]


ADDED, REMOVED, TIGHTENED, LOOSENED = "added", "removed", "tightened", "loosened"


@pytest.mark.parametrize(
    ("field", "less", "more", "forth", "back"),
    [
        ("outputs", "outputs: [a]", "outputs: [b, a]", ADDED, REMOVED),
        ("outputs", "outputs: []", "outputs: [a]", ADDED, REMOVED),
        ("verification_evidence", "verification_evidence: []", "verification_evidence: [a]", ADDED, REMOVED),
        ("commands", "truth_required_commands: [make]", "truth_required_commands: [make, pytest]", ADDED, REMOVED),
        ("depends_on", "depends_on: [X]", "depends_on: [X, Y]", ADDED, REMOVED),
        ("truth_checks", "truth_checks: []", "truth_checks: [freshness]", ADDED, REMOVED),
        ("inputs", "inputs: [a]", "inputs: [a, b]", ADDED, REMOVED),
        ("inputs", "inputs: [a]", "inputs: []", TIGHTENED, LOOSENED),
        ("stakes", "stakes: low\nreward_target: 80\nmax_iterations: 3", "stakes: normal", TIGHTENED, LOOSENED),
        ("stakes", "stakes: normal\nreward_target: 80\nmax_iterations: 3",
         "stakes: high\nreward_target: 80\nmax_iterations: 3", TIGHTENED, LOOSENED),
        ("stakes", "stakes: high\nreward_target: 80\nmax_iterations: 3",
         "stakes: critical\nreward_target: 80\nmax_iterations: 3", TIGHTENED, LOOSENED),
        ("reward_target", "reward_target: 79", "reward_target: 80", TIGHTENED, LOOSENED),
        ("reward_target", "reward_target: 9", "reward_target: 10", TIGHTENED, LOOSENED),
        ("max_iterations", "max_iterations: 10", "max_iterations: 9", TIGHTENED, LOOSENED),
        ("truth_mode", "truth_mode: off", "truth_mode: strict", TIGHTENED, LOOSENED),
        ("execution_log_required", "execution_log_required: false", "", TIGHTENED, LOOSENED),
        ("lesson_capture_required", "lesson_capture_required: no", "", TIGHTENED, LOOSENED),
        ("read_only", "read_only: true", "read_only: false", TIGHTENED, LOOSENED),
        ("exemptions.execution_log_exemption_reason", "execution_log_exemption_reason: none", "", TIGHTENED, LOOSENED),
        ("exemptions.lesson_capture_exemption_reason", "lesson_capture_exemption_reason: x", "", TIGHTENED, LOOSENED),
    ],
    ids=lambda value: value.replace("\n", " ") if ":" in value else None,
)  # fmt: skip
def test_an_edit_of_a_field_asks_for_more_one_way_and_for_less_the_other(
    field: str, less: str, more: str, forth: str, back: str
) -> None:
    assert edited(less, more) == [(forth, field)]
    assert edited(more, less) == [(back, field)]


def test_another_reason_for_an_exemption_is_loosened_whichever_it_is() -> None:
    first, other = "execution_log_exemption_reason: docs only", "execution_log_exemption_reason: I said so"
    assert edited(first, other) == edited(other, first) == [("loosened", "exemptions.execution_log_exemption_reason")]
    assert compare_terms(job_terms(job(first)), job_terms(job(other)))[0][2:] == ("docs only", "I said so")


def test_other_inputs_in_place_of_the_agreed_ones_are_removed_and_added() -> None:
    assert edited("inputs: [a, b]", "inputs: [b, c]") == [("removed", "inputs"), ("added", "inputs")]


def test_inputs_that_narrow_the_tracked_tree_are_told_as_such() -> None:
    found = compare_terms(job_terms(job()), job_terms(job("inputs: [b, a]")))
    assert found == (TermsChange("loosened", "inputs", "the tracked tree", "a, b"),)
    assert_sentences(compare_terms(job_terms(job("inputs: [b, a]")), job_terms(job()))[0][2:])


def test_every_field_is_judged_by_itself() -> None:
    before = "outputs: [a]\nmax_iterations: 3\nreward_target: 80"
    after = "outputs: [b]\nmax_iterations: 2\nreward_target: 70"
    found = compare_terms(job_terms(job(before)), job_terms(job(after)))
    assert [(*change, change.voids) for change in found] == [
        ("tightened", "max_iterations", "3", "2", False),
        ("removed", "outputs", "a", None, True),
        ("added", "outputs", None, "b", False),
        ("loosened", "reward_target", "80", "70", True),
    ]


@pytest.mark.parametrize(
    ("kind", "voids"), [("added", False), ("tightened", False), ("loosened", True), ("removed", True)]
)
def test_only_what_was_loosened_or_removed_voids(kind: Any, voids: bool) -> None:
    assert TermsChange(kind, "x", "a", "b").voids is voids


def test_terms_of_another_job_or_another_form_are_not_the_same_agreement(tmp_path: Path) -> None:
    terms = job_terms(job())
    other = msgspec.structs.replace(terms, job="WI-20260214-002")
    assert brief(terms, other) == [("removed", "job"), ("added", "job")]
    of_project = project_terms(project(), Settings(root=tmp_path))
    assert brief(terms, of_project) == [("removed", "schema"), ("added", "schema")]
    assert brief(of_project, terms) == [("removed", "schema"), ("added", "schema")]


def test_a_project_that_was_agreed_before_hooks_could_be_switched_off_has_agreed_to_nothing_about_it(
    tmp_path: Path,
) -> None:
    terms = project_terms(project(), Settings(root=tmp_path))
    without = msgspec.structs.replace(terms, hooks_switched_off=msgspec.UNSET)
    assert brief(terms, without) == [("loosened", "hooks_switched_off")]
    assert brief(without, terms) == [("tightened", "hooks_switched_off")]


# The project: its criteria, the gate's own configuration, hooks and baselines.


@pytest.fixture
def terms_with(tmp_path: Path) -> Callable[[str], ProjectTerms]:
    """The terms of a project with these settings."""
    (tmp_path / ".git").mkdir()

    def found(toml: str) -> ProjectTerms:
        (tmp_path / "donewhen.toml").write_text(toml)
        return project_terms(project(), load(tmp_path))

    return found


def test_a_projects_criteria_are_terms_and_its_other_fields_are_not(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    terms = project_terms(project("- AC-1: Users  are\n  happy.\n- Fast.\n"), settings)
    assert terms.criteria == ("Fast.", "Users are happy.")
    assert brief(project_terms(project(), settings), terms) == [("added", "criteria")]
    assert brief(terms, project_terms(project(), settings)) == [("removed", "criteria")]
    other = project(frontmatter="title: X\nstatus: in_progress\nagreed_notes: x\ngithub_repo: octo/demo")
    assert terms_hash(project_terms(other, settings)) == terms_hash(project_terms(project(), settings))


def test_a_mirror_is_switched_on_freely_and_switched_off_or_turned_elsewhere_by_a_person(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path)
    off = project_terms(project(frontmatter="github_repo: octo/demo"), settings)
    on = project_terms(project(frontmatter="github_enabled: true\ngithub_repo: octo/demo"), settings)
    elsewhere = project_terms(project(frontmatter="github_enabled: true\ngithub_repo: eve/leak"), settings)
    assert brief(off, on) == [("added", "github")]
    assert brief(on, off) == [("removed", "github")]
    assert brief(on, elsewhere) == [("removed", "github"), ("added", "github")]


@pytest.mark.parametrize("guard", ["stop", "subagent_stop", "task_completed"])
@pytest.mark.parametrize(
    ("name", "less", "more", "forth", "back"),
    [
        ("files", "files = []", "files = ['a']", ADDED, REMOVED),
        ("commands", "commands = ['a']", "commands = ['b', 'a']", ADDED, REMOVED),
        ("pass_env", "pass_env = ['A', 'B']", "pass_env = ['B']", TIGHTENED, LOOSENED),
        ("command_timeout", "command_timeout = 301", "command_timeout = 300", TIGHTENED, LOOSENED),
        ("check_timeout", "check_timeout = 1500.5", "", TIGHTENED, LOOSENED),
        ("max_stalled", "max_stalled = 4", "", TIGHTENED, LOOSENED),
        ("max_attempts", "", "max_attempts = 100", TIGHTENED, LOOSENED),
    ],
)
def test_a_guards_settings_have_a_direction(
    terms_with: Callable[[str], ProjectTerms], guard: str, name: str, less: str, more: str, forth: str, back: str
) -> None:
    lower, higher = terms_with(f"[{guard}]\n{less}\n"), terms_with(f"[{guard}]\n{more}\n")
    assert brief(lower, higher) == [(forth, f"settings.{guard}.{name}")]
    assert brief(higher, lower) == [(back, f"settings.{guard}.{name}")]


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("jobs.command_timeout", "jobs.command_timeout = 900.5", "jobs.command_timeout = 900"),
        ("jobs.pass_env", "jobs.pass_env = ['TOKEN']", ""),
        ("approval.ci", "approval.ci = true", "approval.ci = false"),
        ("approval.keys", "approval.keys = ['ed25519:a', 'ed25519:b']", "approval.keys = ['ed25519:b']"),
        ("stop.tests.timeout", "stop.tests = {run = 'x', timeout = 901}", "stop.tests = {run = 'x'}"),
        ("stop.tests.pass_env", "stop.tests = {run = 'x', pass_env = ['A']}", "stop.tests = {run = 'x'}"),
    ],
    ids=lambda value: None if " " in value or not value else value,
)
def test_what_allows_more_is_loosened(
    terms_with: Callable[[str], ProjectTerms], name: str, less: str, more: str
) -> None:
    lower, higher = terms_with(less), terms_with(more)
    assert brief(lower, higher) == [("tightened", f"settings.{name}")]
    assert brief(higher, lower) == [("loosened", f"settings.{name}")]


def test_a_test_suite_is_added_and_can_not_be_taken_away(terms_with: Callable[[str], ProjectTerms]) -> None:
    without, with_suite = terms_with(""), terms_with("[stop.tests]\nrun = 'pytest --junitxml={junit}'\n")
    assert not any(term.voids for term in compare_terms(without, with_suite))
    assert ("removed", "settings.stop.tests.run") in brief(with_suite, without)


def test_a_test_command_or_a_baseline_that_is_another_one_is_removed_and_added(
    terms_with: Callable[[str], ProjectTerms],
) -> None:
    before = terms_with("[stop.tests]\nrun = 'pytest'\nbaseline = 'a.json'\n")
    after = terms_with("[stop.tests]\nrun = 'pytest -k one'\nbaseline = 'b.json'\n")
    assert brief(before, after) == [
        ("removed", "settings.stop.tests.baseline"),
        ("added", "settings.stop.tests.baseline"),
        ("removed", "settings.stop.tests.run"),
        ("added", "settings.stop.tests.run"),
    ]
    assert brief(terms_with("[stop.tests]\nrun = 'pytest'\n"), before) == [("added", "settings.stop.tests.baseline")]


def test_settings_that_say_the_default_or_moved_to_pyproject_have_not_changed(tmp_path: Path) -> None:
    text = "[{0}stop]\nfiles = ['a', 'b']\nmax_stalled = 4\n[{0}approval]\nci = true\n"
    own, shared = tmp_path / "own", tmp_path / "shared"
    for folder in (own, shared):
        (folder / ".git").mkdir(parents=True)
    (own / "donewhen.toml").write_text(text.format("") + "[jobs]\ncommand_timeout = 900\n")
    (shared / "pyproject.toml").write_text(text.format("tool.donewhen."))
    first, other = (project_terms(project(), load(folder)) for folder in (own, shared))
    assert first.settings == {"stop.files": ("a", "b"), "stop.max_stalled": 4, "approval.ci": True}
    assert terms_hash(first) == terms_hash(other)


def test_a_deleted_settings_file_takes_away_what_it_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    file = tmp_path / "donewhen.toml"
    file.write_text("[stop]\nfiles = ['a']\nmax_attempts = 60\n[jobs]\ncommand_timeout = 10\npass_env = ['X']\n")
    before = project_terms(project(), load(tmp_path))
    file.unlink()
    assert brief(before, project_terms(project(), load(tmp_path))) == [
        ("loosened", "settings.jobs.command_timeout"),
        ("tightened", "settings.jobs.pass_env"),
        ("removed", "settings.stop.files"),
        ("loosened", "settings.stop.max_attempts"),
    ]


def test_a_setting_whose_direction_nobody_knows_is_removed_and_added(terms_with: Callable[[str], ProjectTerms]) -> None:
    terms = terms_with("")
    first, other = (msgspec.structs.replace(terms, settings={"stop.later": value}) for value in ("a", "b"))
    assert brief(first, other) == [("removed", "settings.stop.later"), ("added", "settings.stop.later")]
    assert brief(terms, first) == [("added", "settings.stop.later")]
    assert brief(first, terms) == [("removed", "settings.stop.later")]


HOOK = "donewhen hook stop --runtime claude"


def hook_file(root: Path, *hooks: dict[str, Any], name: str = ".claude/settings.json", **more: Any) -> ProjectTerms:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"hooks": {"Stop": list(hooks)}, **more}))
    return project_terms(project(), Settings(root=root))


def hook(command: str = HOOK, timeout: int = 600, **more: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": timeout}], **more}


@pytest.mark.parametrize("name", [".claude/settings.json", ".codex/hooks.json"])
def test_hooks_of_ours_are_terms_and_those_of_others_are_not(tmp_path: Path, name: str) -> None:
    without = project_terms(project(), Settings(root=tmp_path))
    with_hook = hook_file(tmp_path, hook(), name=name)
    assert brief(without, with_hook) == [("added", "hooks")]
    assert brief(with_hook, without) == [("removed", "hooks")]
    assert with_hook.hooks == (f"{name}: Stop: {HOOK} [600 s]",)
    assert hook_file(tmp_path, hook("make lint"), hook(), name=name, model="x") == with_hook


@pytest.mark.parametrize(
    "other",
    [hook(timeout=1), hook(f"{HOOK} || true"), hook(f"true # {HOOK}"), hook(matcher="Bash")],
    ids=["timeout", "operator", "comment", "matcher"],
)
def test_a_hook_that_was_changed_was_removed(tmp_path: Path, other: dict[str, Any]) -> None:
    before = hook_file(tmp_path, hook())
    assert ("removed", "hooks") in brief(before, hook_file(tmp_path, other))


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json"])
def test_switching_all_hooks_off_is_loosened_also_in_a_local_file(tmp_path: Path, name: str) -> None:
    before = hook_file(tmp_path, name=name)
    off = hook_file(tmp_path, name=name, disableAllHooks=True)
    assert brief(before, off) == [("loosened", "hooks_switched_off")]
    assert brief(off, before) == [("tightened", "hooks_switched_off")]
    assert brief(before, hook_file(tmp_path, name=name, disableAllHooks=False)) == []


def guarded_terms(root: Path) -> ProjectTerms:
    suite = GuardSettings(tests=TestSettings("pytest", baseline="tests.json"))
    return project_terms(project(), Settings(stop=suite, task_completed=suite, root=root))


def baseline_terms(root: Path, executed: str, skipped: str = "") -> ProjectTerms:
    SuiteBaseline(frozenset(executed.split()), frozenset(skipped.split())).save(root / "tests.json")
    return guarded_terms(root)


@pytest.mark.parametrize(
    ("executed", "skipped", "kind"),
    [
        ("a b", "c d", None),
        ("a b new", "c d", "tightened"),
        ("a b c", "d", "tightened"),
        ("a b", "c d new", "tightened"),
        ("a", "c d", "loosened"),
        ("a", "b c d", "loosened"),
        ("a other", "c d", "loosened"),
        ("a b", "c", "loosened"),
        ("", "", "loosened"),
    ],
    ids=["same", "new", "runs again", "new skipped", "lost", "newly skipped", "renamed", "skipped one lost", "empty"],
)
def test_a_baseline_may_grow_and_not_shrink(tmp_path: Path, executed: str, skipped: str, kind: str | None) -> None:
    before, after = baseline_terms(tmp_path, "a b", "c d"), baseline_terms(tmp_path, executed, skipped)
    found = compare_terms(before, after)
    assert [(change.kind, change.field) for change in found] == (
        [] if kind is None else [(kind, "baselines.tests.json")]
    )
    for change in found:
        message = f"{len(executed.split())} tests, {len(skipped.split())} skipped"
        assert (change.before, change.after) == ("2 tests, 2 skipped", message)


@pytest.mark.parametrize("broken", [None, "{"], ids=["gone", "not JSON"])
def test_a_baseline_that_is_gone_or_broken_was_removed(tmp_path: Path, broken: str | None) -> None:
    before = baseline_terms(tmp_path, "a")
    file = tmp_path / "tests.json"
    file.unlink() if broken is None else file.write_text(broken)
    after = guarded_terms(tmp_path)
    assert compare_terms(before, after) == (TermsChange("removed", "baselines.tests.json", "1 tests, 0 skipped", None),)
    assert compare_terms(after, before) == (TermsChange("added", "baselines.tests.json", None, "1 tests, 0 skipped"),)


def test_two_tests_whose_names_differ_in_the_last_letter_are_two(tmp_path: Path) -> None:
    names = " ".join(f"tests/test_x.py::test_{number}" for number in range(300))
    marks = baseline_terms(tmp_path, names).baselines["tests.json"].executed
    assert len(marks) == 300
    assert list(marks) == sorted(marks)
    assert max(map(len, marks)) == 12


def test_the_first_command_takes_over_what_a_person_decides_so_it_loosens() -> None:
    found = edited("truth_required_commands: []", "truth_required_commands: [pytest]")
    assert found[0] == (ADDED, "commands")
    assert set(found[1:]) == {(LOOSENED, "criteria")}
