"""One test for each rule of the rewards specification, in our own words, against the product as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.board.tracker import tracker_path
from donewhen.jobs.board.views import dashboard_path
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, DecisionKind, decide
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.gates.evaluation import Evaluation, evaluate
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.issues.mirror_status import expected_issue_of
from donewhen.jobs.judge.person_overrides import override_gate
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lessons.lesson_file import lessons_path
from donewhen.jobs.lessons.lesson_recording import LessonDraft, answer_lesson, capture_lesson
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.start import StartResult, start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import STAKES, STATUSES, FieldError, Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import mismatches
from donewhen.jobs.record.writing import writing

SCRIPTS = Path(__file__).parents[2] / "scripts"
ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
WRITTEN = "The result is written down.\n  check: file outputs/primary.md"


class Project:
    """A project with jobs that people and agents work on."""

    def __init__(self, root: Path) -> None:
        self.workspace: Workspace = create_project(root, "Demo")

    def add(self, *criteria: str, agreed: bool = True, started: bool = True, **options: Any) -> Job:
        job = add_job(self.workspace, "Parser", criteria=criteria or (WRITTEN,), **options)
        if agreed:
            self.agree(job)
            if started:
                assert self.start(job).started
        return self.read(job)

    def agree(self, job: Job) -> None:
        for proposal in agreement_proposals(self.workspace, [self.read(job)]):
            agree(self.workspace, proposal, ADA)

    def start(self, job: Job) -> StartResult:
        return start_job(self.workspace, job.id, BOT)

    def read(self, job: Job) -> Job:
        return self.workspace.job_at(job.path)

    def field(self, job: Job, name: str) -> Any:
        return self.read(job).document.fields.get(name)

    def output(self, job: Job, text: str = "The log has 12 lines.\n") -> None:
        (job.folder / "outputs" / "primary.md").write_text(text)

    def edit(self, job: Job, before: str, after: str) -> Job:
        text = job.path.read_text()
        assert before in text
        job.path.write_text(text.replace(before, after, 1))
        return self.read(job)

    def complete(self, job: Job) -> Completion:
        return complete(self.workspace, job.id, BOT)

    def look(self, job: Job) -> Evaluation:
        return evaluate_and_record(self.workspace, job.id, BOT, collecting=True).evaluation

    def look_only(self, job: Job) -> Evaluation:
        return evaluate_and_record(self.workspace, job.id, BOT, collecting=False).evaluation

    def hint(self, job: Job) -> str:
        return evaluate(facts_of(self.workspace, self.read(job))).next_action

    def mirror(self, job: Job, **otherwise: str) -> None:
        """What a sync records that found the issue as it should be, or otherwise."""
        wanted = expected_issue_of(
            self.workspace, self.workspace.project(), self.read(job), self.workspace.ledger.read(job.id).entries
        ).marks()
        seen = {"repo": "octo/demo", "number": 7, "url": "", "wanted": wanted, "observed": {**wanted, **otherwise}}
        with writing(self.workspace, job.path) as plan:
            plan.append("mirrored", seen, Approval(BOT))

    def spend(self, job: Job) -> Completion:
        """Try to complete until the budget is gone."""
        for _ in range(job.max_iterations + 1):
            result = self.complete(job)
        return result

    def script(self, name: str, job: Job, *options: str) -> subprocess.CompletedProcess[str]:
        place = ["--project", str(self.workspace.root), "--work-item-id", job.id]
        command = [sys.executable, str(SCRIPTS / name), *place, *options]
        return subprocess.run(command, capture_output=True, text=True, cwd="/")


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


def codes(result: Completion) -> set[GateCode]:
    assert result.evaluation is not None
    return {reason.code for reason in result.evaluation.reasons}


# The completion model


def test_done_needs_all_gates_and_then_it_is_done(project: Project) -> None:
    job = project.add()
    project.output(job)
    result = project.complete(job)
    assert result.evaluation is not None
    assert [gate.gate for gate in result.evaluation.gates] == ["agreement", "budget", "dependency", "truth", "reward"]
    assert all(gate.passed for gate in result.evaluation.gates)
    assert (result.done, project.read(job).status) == (True, "done")


def test_nothing_is_executed_before_it_is_agreed(project: Project) -> None:
    job = project.add(agreed=False)
    refused = project.start(job)
    assert (refused.started, [reason.code for reason in refused.reasons]) == (
        False,
        [GateCode.NOT_AGREED_YET, GateCode.NOT_AGREED_YET],
    )
    assert project.read(job).status == "planned"


def test_nothing_is_completed_before_it_is_agreed(project: Project) -> None:
    job = project.add(agreed=False)
    project.output(job)
    result = project.complete(job)
    assert not result.done
    assert codes(result) == {GateCode.NOT_AGREED_YET, GateCode.NOT_STARTED}


def test_a_score_below_the_target_is_refused_though_all_else_holds(project: Project) -> None:
    job = project.add(agreed=False)
    project.edit(job, "reward_target: 80", "reward_target: 98")
    project.agree(job)
    project.start(job)
    project.output(job)
    result = project.complete(job)
    assert (result.done, codes(result)) == (False, {GateCode.SCORE_TOO_LOW})
    project.edit(job, "## Progress Log\n", "## Progress Log\n\n- Parsed the first log.\n")
    assert project.complete(job).done


def test_a_criterion_that_fails_is_refused_whatever_the_score(project: Project) -> None:
    job = project.add("There are rows.\n  check: file outputs/primary.md rows >= 3", agreed=False, stakes="low")
    project.edit(job, "reward_target: 70", "reward_target: 0")
    project.agree(job)
    project.start(job)
    project.output(job)
    result = project.complete(job)
    assert (result.done, codes(result)) == (False, {GateCode.CRITERION_FAILED})
    assert result.evaluation is not None
    assert result.evaluation.score.total > 0


def test_a_job_whose_dependency_is_open_can_neither_start_nor_complete(project: Project) -> None:
    first = project.add()
    second = project.add(depends_on=[first.id], started=False)
    project.output(second)
    assert [reason.code for reason in project.start(second).reasons] == [GateCode.DEPENDENCY_OPEN]
    assert codes(project.complete(second)) >= {GateCode.DEPENDENCY_OPEN}
    project.output(first)
    assert project.complete(first).done
    assert project.start(second).started
    assert project.complete(second).done


@pytest.mark.parametrize("content", [None, "", "\n"], ids=["missing", "empty", "newline"])
def test_an_output_must_be_there_and_say_something(project: Project, content: str | None) -> None:
    job = project.add("It reads well.")
    if content is not None:
        project.output(job, content)
    assert GateCode.OUTPUT_MISSING in codes(project.complete(job))


@pytest.mark.parametrize("content", [None, "", " \n"], ids=["missing", "empty", "white"])
def test_required_evidence_must_be_there_and_say_something(project: Project, content: str | None) -> None:
    job = project.add(agreed=False)
    project.edit(job, "verification_evidence: []", "verification_evidence:\n  - artifacts/proof.md")
    project.agree(job)
    project.start(job)
    project.output(job)
    if content is not None:
        (job.folder / "artifacts" / "proof.md").write_text(content)
    assert codes(project.complete(job)) == {GateCode.EVIDENCE_FILE_MISSING}
    (job.folder / "artifacts" / "proof.md").write_text("I compared all 12 lines.\n")
    assert project.complete(job).done


def test_a_cancelled_job_is_not_completed(project: Project) -> None:
    job = project.add()
    project.output(job)
    decide(project.workspace, job, Decision("cancel", "not needed"), ADA)
    result = project.complete(job)
    assert (result.done, project.read(job).status) == (False, "cancelled")


def test_the_four_scripts_enforce_the_model(project: Project) -> None:
    job = project.add()
    for name in ("reward_eval.py", "truth_eval.py", "job_complete.py"):
        assert project.script(name, job).returncode == 1
    project.output(job)
    assert project.script("truth_eval.py", job).returncode == 0
    assert project.script("reward_eval.py", job).returncode == 0
    told = project.script("job_complete.py", job, "--json")
    assert (told.returncode, json.loads(told.stdout)["data"]["done"]) == (0, True)
    checked = [sys.executable, str(SCRIPTS / "plan_check.py"), "--project", str(project.workspace.root)]
    assert subprocess.run(checked, capture_output=True).returncode == 0
    project.edit(job, "reward_last_score: 97", "reward_last_score: 100")
    assert subprocess.run(checked, capture_output=True).returncode == 1


# Fields


REQUIRED = [
    "stakes",
    "reward_target",
    "max_iterations",
    "iteration",
    "rework_count",
    "rework_reason",
    "reward_last_score",
    "reward_last_eval_at",
    "reward_last_next_action",
]


def test_a_new_job_has_every_required_field(project: Project) -> None:
    job = project.add(agreed=False)
    assert set(REQUIRED) <= set(job.document.fields)


def test_an_evaluation_fills_the_reward_fields_of_a_plan_that_lacks_them(project: Project) -> None:
    job = project.add(agreed=False)
    for name in REQUIRED:
        line = next(one for one in job.path.read_text().splitlines(keepends=True) if one.startswith(f"{name}:"))
        project.edit(job, line, "")
    found = project.read(job)
    assert (found.stakes, found.reward_target, found.max_iterations, found.iteration) == ("normal", 80, 3, 0)
    project.look(job)
    assert {"reward_last_score", "reward_last_eval_at", "reward_last_next_action"} <= set(
        project.read(job).document.fields
    )


def test_the_status_words_are_fixed_and_another_one_is_an_error_with_a_suggestion(project: Project) -> None:
    assert STATUSES == ("planned", "in_progress", "blocked", "done", "cancelled")
    job = project.add(agreed=False)
    with pytest.raises(FieldError, match="did you mean 'in_progress'"):
        project.edit(job, "status: planned", "status: in-progress")


def test_the_stakes_are_fixed_and_another_one_is_an_error_with_a_suggestion(project: Project) -> None:
    assert STAKES == ("low", "normal", "high", "critical")
    job = project.add(agreed=False)
    with pytest.raises(FieldError, match="did you mean 'normal'"):
        project.edit(job, "stakes: normal", "stakes: norml")


@pytest.mark.parametrize(
    ("stakes", "target", "budget"), [("low", 70, 2), ("normal", 80, 3), ("high", 90, 5), ("critical", 95, 7)]
)
def test_target_and_budget_follow_from_the_stakes(project: Project, stakes: str, target: int, budget: int) -> None:
    job = project.add(agreed=False, stakes=stakes)
    assert (job.reward_target, job.max_iterations) == (target, budget)
    bare = project.edit(job, f"reward_target: {target}\nmax_iterations: {budget}\n", "")
    assert (bare.reward_target, bare.max_iterations) == (target, budget)


# The score


def test_the_score_is_made_of_the_seven_components(project: Project) -> None:
    found = project.look(project.add())
    assert [component.name for component in found.score.components] == [
        "acceptance",
        "verification",
        "hygiene",
        "views",
        "lessons",
        "execution_log",
        "parity",
    ]


def test_looking_twice_gives_the_same_score_and_costs_no_iteration(project: Project) -> None:
    job = project.add()
    assert project.look(job).score == project.look(job).score
    assert project.field(job, "iteration") == 0


def points(project: Project, job: Job, name: str) -> tuple[bool, float]:
    """Whether a component counts, and what it gives as things are: this look brings nothing up to date."""
    score = evaluate(facts_of(project.workspace, project.read(job))).score
    (found,) = (component for component in score.components if component.name == name)
    return found.applies, found.got


def lesson_points(project: Project, job: Job) -> tuple[bool, float]:
    return points(project, job, "lessons")


@pytest.mark.parametrize("view", ["tracker", "html", "json"])
@pytest.mark.parametrize("damage", ["gone", "empty", "edited"])
def test_tracker_and_dashboard_count_half_each_and_only_while_they_say_what_is_so(
    project: Project, view: str, damage: str
) -> None:
    job = project.add()
    project.output(job)
    project.look(job)
    assert points(project, job, "views") == (True, 10)
    path = tracker_path(project.workspace) if view == "tracker" else dashboard_path(project.workspace, view)
    text = path.read_text()
    assert "in_progress" in text
    path.write_text({"edited": text.replace("in_progress", "done")}.get(damage, ""))
    if damage == "gone":
        path.unlink()
    assert points(project, job, "views") == (True, 5)
    assert project.hint(job) == "Refresh the task tracker and the dashboard."
    project.look(job)
    assert points(project, job, "views") == (True, 10)


def test_views_that_are_there_and_stale_count_for_nothing(project: Project) -> None:
    job = project.add()
    project.edit(job, "title: Parser", "title: Reader")
    assert points(project, job, "views") == (True, 0)


LEARNED = LessonDraft("The parser lost the last line.", "Reading to the end.", "Try a parser without a newline.")


def test_a_lesson_counts_when_it_was_captured_by_the_job_and_stands_as_it_was(project: Project) -> None:
    job = project.add(agreed=False)
    project.edit(job, "lesson_capture_required: false", "lesson_capture_required: true")
    project.agree(job)
    project.start(job)
    assert lesson_points(project, job) == (True, 0)
    capture_lesson(project.workspace, LEARNED, [job], BOT)
    assert lesson_points(project, job) == (True, 5)
    path = lessons_path(project.workspace)
    path.write_text(path.read_text().replace("Reading to the end", "Something else"))
    assert lesson_points(project, job) == (True, 0)


def test_a_lesson_from_before_the_work_was_not_learned_by_it(project: Project) -> None:
    job = project.add(agreed=False)
    project.edit(job, "lesson_capture_required: false", "lesson_capture_required: true")
    project.agree(job)
    assert capture_lesson(project.workspace, LEARNED, [job], BOT).lesson.linked == (job.id,)
    project.start(job)
    assert lesson_points(project, job) == (True, 0)


def test_lessons_of_earlier_jobs_are_applied_when_the_job_that_was_given_them_answers(project: Project) -> None:
    contexts = ("The parser lost the last line at night.", "The parser lost the last line by day.")
    first, second = (
        capture_lesson(project.workspace, LEARNED._replace(context=context), [], BOT).lesson for context in contexts
    )
    job = project.add("The parser reads the last line.\n  check: run true")
    assert lesson_points(project, job) == (True, 0)
    answer_lesson(project.workspace, first.id, job, "used", "There is such a test now.", BOT)
    assert lesson_points(project, job) == (True, 2.5)
    answer_lesson(project.workspace, second.id, job, "not_relevant", "It runs at night only.", BOT)
    assert lesson_points(project, job) == (True, 5)


def test_captured_and_applied_count_half_each_where_both_are_asked_for(project: Project) -> None:
    capture_lesson(project.workspace, LEARNED, [], BOT)
    job = project.add("The parser reads the last line.\n  check: run true", agreed=False)
    project.edit(job, "lesson_capture_required: false", "lesson_capture_required: true")
    project.agree(job)
    assert project.start(job).lessons
    capture_lesson(project.workspace, LEARNED._replace(context="Another thing altogether."), [job], BOT)
    assert lesson_points(project, job) == (True, 2.5)


def test_a_job_that_owes_no_lesson_and_was_given_none_is_not_measured_by_lessons(project: Project) -> None:
    capture_lesson(project.workspace, LEARNED._replace(context="Gardens.", recommendation="Water them."), [], BOT)
    assert lesson_points(project, project.add()) == (False, 0)


def test_what_the_gate_runs_is_in_the_execution_log_and_what_somebody_writes_there_counts_for_nothing(
    project: Project,
) -> None:
    job = project.add("It runs.\n  check: run true", "More runs.\n  check: run true --again")
    log = project.workspace.base / "logs" / "execution.jsonl"
    log.parent.mkdir(exist_ok=True)
    forged = json.dumps({"work_item_id": job.id, "command": "true", "exit_code": 0}) + "\n"
    log.write_text(forged)
    facts = facts_of(project.workspace, project.read(job))
    assert (facts.runs, {standing.state for standing in facts.evidence}) == (0, {"missing"})
    project.look(job)
    rows = [json.loads(line) for line in log.read_text().removeprefix(forged).splitlines()]
    assert [(row["work_item_id"], row["label"], row["level"]) for row in rows] == [
        (job.id, "AC-1", "info"),
        (job.id, "AC-2", "info"),
    ]


def test_the_execution_log_counts_what_the_gate_has_run_for_this_job(project: Project) -> None:
    job, other = project.add("It runs.\n  check: run true"), project.add("It runs, too.\n  check: run true")
    assert points(project, job, "execution_log") == (True, 0)
    project.look(job)
    assert points(project, job, "execution_log") == (True, 10)
    assert points(project, other, "execution_log") == (True, 0)


def test_parity_counts_only_where_mirroring_is_enabled_and_while_the_issue_is_as_it_should_be(project: Project) -> None:
    job = project.add()
    assert points(project, job, "parity") == (False, 0)
    plan = project.workspace.project_file
    plan.write_text(plan.read_text().replace("github_enabled: false", "github_enabled: true"))
    assert points(project, job, "parity") == (True, 0)
    project.mirror(job)
    assert points(project, job, "parity") == (True, 5)
    project.edit(job, "title: Parser", "title: Reader")
    assert points(project, job, "parity") == (True, 0), "the issue has the old title"
    project.mirror(job)
    assert points(project, job, "parity") == (True, 5)
    project.mirror(job, state="completed")
    assert points(project, job, "parity") == (True, 0), "somebody has closed the issue"


def test_rework_that_does_not_improve_and_a_budget_that_is_exceeded_cost_points(project: Project) -> None:
    job = project.add()
    before = project.look(job).score.total
    project.complete(job)
    project.complete(job)
    assert [penalty.points for penalty in project.look(job).score.penalties] == [2]
    assert project.look(job).score.total == before - 2
    project.spend(job)
    assert [penalty.points for penalty in project.look(job).score.penalties][-1] == 10


# Truth


def test_a_truth_failure_blocks_though_the_score_is_computed_and_no_promise_is_given(project: Project) -> None:
    job = project.add("It is good.\n  check: run false", agreed=False)
    project.edit(job, "reward_target: 80", "reward_target: 0")
    project.agree(job)
    project.start(job)
    project.output(job)
    told = project.script("job_complete.py", job)
    assert told.returncode == 1
    assert "<promise>" not in told.stdout + told.stderr
    assert project.field(job, "truth_last_status") == "fail"
    assert len(project.field(job, "truth_last_failures")) == 1
    assert project.field(job, "reward_last_score") > 0
    assert project.read(job).status == "in_progress"


@pytest.mark.parametrize(
    ("before", "after"),
    [("truth_last_status: fail", "truth_last_status: pass"), ("reward_last_score: ", "reward_last_score: 9")],
    ids=["status", "score"],
)
def test_typing_a_better_result_into_the_plan_is_a_truth_failure_of_its_own(
    project: Project, before: str, after: str
) -> None:
    job = project.add()
    project.look(job)
    project.output(job)
    edited = project.edit(job, before, after)
    assert mismatches(edited.document.fields, project.workspace.ledger.read(job.id).entries)
    assert GateCode.RECORD_TAMPERED in codes(project.complete(job))


# The budget


def test_a_job_beyond_its_budget_is_blocked_and_denied(project: Project) -> None:
    job = project.add()
    for number in (1, 2, 3):
        assert (project.complete(job).done, project.field(job, "iteration")) == (False, number)
        assert project.read(job).status == "in_progress"
    project.complete(job)
    assert (project.field(job, "iteration"), project.read(job).status) == (4, "blocked")
    project.output(job)
    assert GateCode.BUDGET_EXCEEDED in codes(project.complete(job))
    assert [reason.code for reason in project.start(job).reasons] == [GateCode.BUDGET_EXCEEDED]
    assert project.read(job).status == "blocked"


def test_starting_again_and_again_leads_beyond_the_budget_only_into_a_block(project: Project) -> None:
    job = project.add()
    for _ in range(6):
        project.start(job)
        found = project.read(job)
        assert found.iteration <= found.max_iterations or found.status == "blocked"


DECISIONS: list[tuple[DecisionKind, Any]] = [
    ("raise_budget", 9),
    ("rescope", None),
    ("split", None),
    ("stakes", "critical"),
    ("target", 60),
]


@pytest.mark.parametrize(("kind", "value"), DECISIONS, ids=[kind for kind, _ in DECISIONS])
def test_a_decision_on_record_lets_it_go_on(project: Project, kind: DecisionKind, value: Any) -> None:
    job = project.add(stakes="low")
    project.spend(job)
    project.output(job)
    assert GateCode.BUDGET_EXCEEDED in codes(project.complete(job))
    assert decide(project.workspace, project.read(job), Decision(kind, "less will do", value), ADA).counts
    found = evaluate(facts_of(project.workspace, project.read(job)))
    assert [gate.passed for gate in found.gates if gate.gate == "budget"] == [True]
    assert project.start(job).started


def test_an_agents_own_decision_lets_nothing_go_on(project: Project) -> None:
    job = project.add()
    project.spend(job)
    decide(project.workspace, project.read(job), Decision("raise_budget", "I need more", 9), Approval(BOT))
    project.output(job)
    assert GateCode.BUDGET_EXCEEDED in codes(project.complete(job))


# The next action


def test_the_next_action_walks_through_the_nine_steps_in_their_order(project: Project) -> None:
    job = project.add("It reads well.", "TBD", agreed=False)
    plan = project.workspace.project_file
    plan.write_text(plan.read_text().replace("github_enabled: false", "github_enabled: true"))
    project.look(job)
    seen = [project.hint(job)]
    project.edit(job, "truth_mode: strict", "truth_mode: off")
    seen.append(project.hint(job))
    project.output(job)
    seen.append(project.hint(job))
    for name in ("AC-1", "AC-2"):
        sign_off(project.workspace, project.read(job), name, "I read it", ADA)
    seen.append(project.hint(job))
    project.edit(job, "- AC-2: TBD\n", "")
    seen.append(project.hint(job))
    project.edit(job, "## Verification\n", "## Verification\n\nCompare the counts.\n")
    tracker_path(project.workspace).unlink()
    seen.append(project.hint(job))
    project.edit(job, "- AC-1: It reads well.", "- AC-1: It reads well.\n  check: run true")
    override_gate(project.workspace, project.read(job), "AC-1", "pass", "I read it", ADA)
    project.look_only(job)
    seen.append(project.hint(job))
    run_as_evidence(project.workspace, project.read(job), ["true"], BOT)
    seen.append(project.hint(job))
    project.edit(job, 'github_issue_number: ""', "github_issue_number: 7")
    project.look(job)
    assert project.hint(job) == seen[-1], "a number that somebody typed is no mirror"
    project.mirror(job)
    project.look(job)
    seen.append(project.hint(job))
    assert seen == [
        "Resolve truth failures: AC-1 (It reads well.) needs a person: nobody has signed it off yet.",
        "Produce the missing outputs: outputs/primary.md",
        "Add the missing verification evidence: AC-1, AC-2",
        "Replace placeholder or weak acceptance criteria.",
        "Write a verification plan that can be carried out.",
        "Refresh the task tracker and the dashboard.",
        "Log execution evidence: run the verification through donewhen run.",
        "Link the GitHub issue of this job: never mirrored; donewhen github sync brings it up to date.",
        "Final check: read the result once more, note progress, then complete.",
    ]


def test_evaluating_writes_the_next_action_into_the_plan(project: Project) -> None:
    job = project.add()
    assert project.script("reward_eval.py", job).returncode == 1
    assert project.field(job, "reward_last_next_action").startswith("Resolve truth failures: AC-1")
    assert project.field(job, "reward_last_eval_at")
    now = evaluate(facts_of(project.workspace, project.read(job)))
    assert project.field(job, "reward_last_score") == now.score.total > 0


# The promise


def test_the_promise_is_printed_exactly_when_the_job_is_done(
    project: Project, donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    job = project.add()
    refused = donewhen(["complete", job.id], project.workspace.root)
    assert refused.returncode == 1
    assert "promise>" not in refused.stdout + refused.stderr
    assert project.read(job).status == "in_progress"
    project.output(job)
    told = donewhen(["complete", job.id], project.workspace.root)
    assert told.returncode == 0
    lines = told.stdout.splitlines()
    place = lines.index(f"<promise>{job.id}-DONE</promise>")
    assert lines[place + 1].startswith("receipt: sha256:")
    assert project.field(job, "status") == "done"
