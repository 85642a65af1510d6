"""Sentences of the rewards specification that are easy to meet in name only, each tried as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spec import test_rewards
from tests.spec.test_rewards import ADA, BOT, WRITTEN

from donewhen.foundation.errors import UsageError
from donewhen.jobs.board.tracker import tracker_path
from donewhen.jobs.board.views import dashboard_path
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.gates.evaluation import Evaluation, evaluate
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.gates.next_action import next_action
from donewhen.jobs.gates.score import Component
from donewhen.jobs.ledger.gate_results import GateCode, GateResult
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.job import FieldError, Job
from donewhen.jobs.plan.workspace import find_workspace


class Project(test_rewards.Project):
    """The same project, with edits that may leave a plan unreadable."""

    def add_edited(self, edits: dict[str, str], *criteria: str) -> Job:
        """A job whose plan was edited before anybody agreed."""
        job = self.add(*criteria, agreed=False)
        for before, after in edits.items():
            self.rewrite(job, before, after)
        self.agree(job)
        assert self.start(job).started
        return self.read(job)

    def rewrite(self, job: Job, before: str, after: str) -> None:
        text = job.path.read_text()
        assert before in text
        job.path.write_text(text.replace(before, after, 1))

    def note_progress(self, job: Job) -> None:
        self.rewrite(job, "## Progress Log\n", "## Progress Log\n\n- Parsed the first log.\n")

    def accept_evidence(self, job: Job) -> None:
        """A critical job needs strong evidence, or a person who accepts less."""
        refused = self.complete(job)
        assert [reason.code for gate in refused.evaluation.gates for reason in gate.reasons][:1] == ["evidence_weak"]
        assert sign_off(self.workspace, self.read(job), "AC-1", "I read it", ADA).counts

    def evaluate(self, job: Job) -> Evaluation:
        """Evaluate as things are, without writing."""
        return evaluate(facts_of(self.workspace, self.read(job)))

    def record(self, job: Job, *, collecting: bool = True) -> Evaluation:
        return evaluate_and_record(self.workspace, job.id, BOT, collecting=collecting).evaluation

    def component(self, job: Job, name: str) -> Component:
        return next(part for part in self.evaluate(job).score.components if part.name == name)


@pytest.fixture
def project(repository: Path) -> Project:
    return Project(repository)


# Every agreed target can be reached


def test_a_target_above_the_maximum_is_an_error_in_a_plan_and_in_a_decision(project: Project) -> None:
    job = project.add()
    with pytest.raises(UsageError, match="at most 100"):
        decide(project.workspace, job, Decision("target", "to be sure", 101), ADA)
    project.rewrite(job, "reward_target: 80", "reward_target: 101")
    with pytest.raises(FieldError, match="reward_target must be at most 100") as caught:
        project.read(job)
    assert caught.value.where is not None
    assert caught.value.where.endswith(f":{job.line_of('reward_target')}")


@pytest.mark.parametrize("refusals", [3, 6])
def test_a_critical_job_that_was_refused_again_and_again_can_still_be_done(project: Project, refusals: int) -> None:
    job = project.add(stakes="critical")
    for _ in range(refusals):
        assert not project.complete(job).done
    assert [penalty.points for penalty in project.evaluate(job).score.penalties] == [min(10, 2 * (refusals - 1))]
    project.output(job)
    project.note_progress(job)
    project.accept_evidence(job)
    result = project.complete(job)
    assert (result.done, result.evaluation and result.evaluation.score.total) == (True, 100)


def test_the_penalty_for_rework_ends_with_the_improvement(project: Project) -> None:
    job = project.add()
    for _ in range(3):
        project.complete(job)
    assert [penalty.points for penalty in project.evaluate(job).score.penalties] == [4]
    project.note_progress(job)
    assert project.evaluate(job).score.penalties == ()


@pytest.mark.parametrize("target", [95, 100])
def test_a_job_that_lacked_no_point_is_done_once_the_other_gates_open(project: Project, target: int) -> None:
    first = project.add()
    job = project.add_edited(
        {"reward_target: 80": f"reward_target: {target}", "max_iterations: 3": "max_iterations: 9"}
    )
    project.output(job)
    project.note_progress(job)
    project.rewrite(job, "depends_on: []", f"depends_on:\n  - {first.id}")
    for _ in range(6):
        refused = project.complete(job)
        assert (refused.done, refused.evaluation and refused.evaluation.score.total) == (False, 100)
    project.output(first)
    assert project.complete(first).done
    # Its upstream is new, so it starts once more.
    assert start_job(project.workspace, job.id, BOT).started
    assert project.complete(job).done


def test_attempts_that_lacked_only_the_work_of_other_jobs_cost_no_points(project: Project) -> None:
    first = project.add()
    job = project.add_edited({"reward_target: 80": "reward_target: 95", "max_iterations: 3": "max_iterations: 9"})
    project.output(job)
    project.rewrite(job, "depends_on: []", f"depends_on:\n  - {first.id}")
    for _ in range(6):
        assert not project.complete(job).done
    evaluation = project.evaluate(job)
    assert (evaluation.score.total < 100, evaluation.score.penalties) == (True, ())
    project.output(first)
    assert project.complete(first).done
    assert start_job(project.workspace, job.id, BOT).started
    assert project.complete(job).done


@pytest.mark.parametrize("kind", ["rescope", "split"])
def test_a_decision_after_a_spent_budget_makes_the_target_reachable_again(project: Project, kind: Any) -> None:
    job = project.add(stakes="critical")
    for _ in range(job.max_iterations + 1):
        refused = project.complete(job)
    assert (refused.done, project.read(job).status) == (False, "blocked")
    decide(project.workspace, project.read(job), Decision(kind, "One attempt more."), ADA)
    project.output(job)
    project.note_progress(job)
    project.accept_evidence(job)
    assert project.complete(job).done


# Placeholders and weak criteria and plans

UNEDITED = [
    "_Make these objective and checkable._",
    "State the objective",
    "to be filled",
    "ok",
    "TBD",
    "<describe it>",
    "T.B.D.",
    "ok \U0001f44d",
    "to be filled (later)",
    "t\u043e be filled",
    "\u2800",
    "待定义",
]
HINT_4 = "Replace placeholder or weak acceptance criteria."
HINT_5 = "Write a verification plan that can be carried out."


def problems(project: Project, job: Job) -> list[str]:
    *_, proposal = agreement_proposals(project.workspace, [project.read(job)])
    return [problem.code for problem in proposal.problems]


@pytest.mark.parametrize("text", UNEDITED)
def test_an_unedited_or_one_word_criterion_cannot_be_agreed_to_and_is_the_fourth_hint(
    project: Project, text: str
) -> None:
    job = project.add(WRITTEN, "It reads well.")
    project.rewrite(job, "It reads well.", text)
    assert problems(project, job) == ["placeholder"]
    project.output(job)
    project.record(job)
    sign_off(project.workspace, project.read(job), "AC-2", "I read it.", ADA)
    facts = facts_of(project.workspace, project.read(job))
    assert next_action(facts, GateResult("truth", ())) == HINT_4


@pytest.mark.parametrize("text", UNEDITED)
def test_an_unedited_or_one_word_plan_cannot_be_agreed_to_and_is_the_fifth_hint(project: Project, text: str) -> None:
    job = project.add("It reads well.")
    project.rewrite(job, "## Verification\n", f"## Verification\n\n{text}\n")
    assert problems(project, job) == ["placeholder"]
    project.output(job)
    sign_off(project.workspace, project.read(job), "AC-1", "I read it.", ADA)
    facts = facts_of(project.workspace, project.read(job))
    assert next_action(facts, GateResult("truth", ())) == HINT_5
    project.rewrite(job, text, "Two people read it aloud.")
    assert problems(project, job) == []
    assert not project.evaluate(job).next_action.startswith(HINT_5)


def test_short_honest_criteria_can_be_agreed_to(project: Project) -> None:
    job = project.add("Tests pass", "Parsed\n  check: file outputs/primary.md", "没有警告", agreed=False)
    assert problems(project, job) == []


def test_a_word_of_a_template_in_a_sentence_does_not_keep_it_from_being_agreed_to(project: Project) -> None:
    job = project.add(
        "A new task has status: todo",
        "getTodos returns Promise<Todo[]>",
        "Will be completed in under 2 s",
        "Describe the install steps in README.md\n  check: file /README.md matches /pip install/",
        "7\n  check: run python3 --version",
        agreed=False,
    )
    assert problems(project, job) == []


def test_an_example_in_a_comment_does_not_keep_a_job_from_being_agreed_to(project: Project) -> None:
    job = project.add("Tests pass", agreed=False)
    project.rewrite(job, "- AC-1: Tests pass", "<!--\n- AC-9: <describe the result>\n-->\n- AC-1: Tests pass")
    assert [criterion.id for criterion in project.read(job).criteria] == ["AC-1"]
    assert problems(project, job) == []


VALUES = ['{"lines": 12}', "7", "None", "<svg/>", '{"a": 1}\n{"a": 2}\n', "[1, 2, 3]"]


@pytest.mark.parametrize("value", VALUES)
def test_a_short_value_is_no_placeholder_where_a_check_of_its_own_is_met(project: Project, value: str) -> None:
    job = project.add_edited({"reward_target: 80": "reward_target: 95"}, WRITTEN)
    project.output(job, value)
    assert project.complete(job).done


@pytest.mark.parametrize("text", ["TBD", "to be filled", "_State the objective_", '["TBD"]', "<describe the result>"])
def test_template_text_stays_a_placeholder_though_the_file_exists(project: Project, text: str) -> None:
    job = project.add()
    project.output(job, text)
    project.record(job)
    assert project.component(job, "acceptance").got == 20
    assert project.evaluate(job).next_action == "Replace the placeholder text in the outputs: outputs/primary.md"


RAN = "It was run.\n  check: run python3 --version"


@pytest.mark.parametrize(
    ("value", "check"),
    [
        ("7", RAN),
        ("None", RAN),
        ("<svg/>", RAN),
        ("<p>ok</p>", RAN),
        ('{"status": "todo"}', RAN),
        ("a\n1\n2\n", "It has rows.\n  check: file outputs/primary.md rows >= 2"),
        ("[tool]", "It has a table.\n  check: file outputs/primary.md matches /^.tool.$/"),
        ("<img src=a.png>", "It shows it.\n  check: file outputs/primary.md matches /img/"),
        ("x", "It is x.\n  check: file outputs/primary.md matches /^x$/"),
        ("无", "It says so.\n  check: file outputs/primary.md matches /无/"),
        ("ok", "It says ok.\n  check: file outputs/primary.md matches /^ok$/"),
        ("\0\1\2", RAN),
    ],
)
def test_an_output_that_a_passed_check_speaks_for_is_no_placeholder(project: Project, value: str, check: str) -> None:
    job = project.add_edited({"reward_target: 80": "reward_target: 95"}, check)
    project.output(job, value)
    assert project.complete(job).done


@pytest.mark.parametrize("text", ["ok", "done \u2705", "TBD", "x", "[tool]", "无"])
def test_a_command_that_passed_does_not_speak_for_words_in_an_output(project: Project, text: str) -> None:
    job = project.add(RAN, WRITTEN)
    project.output(job, text)
    result = project.complete(job)
    assert not result.done
    assert project.component(job, "acceptance").got == 20
    assert project.evaluate(job).next_action == "Replace the placeholder text in the outputs: outputs/primary.md"


# What is written, and the execution log


def test_a_refusal_and_a_restart_write_the_rework_and_its_reason(project: Project) -> None:
    job = project.add()
    assert (project.field(job, "rework_count"), project.field(job, "rework_reason")) == (0, "")
    refused = project.complete(job)
    assert refused.evaluation is not None
    reason = refused.evaluation.reasons[0].message
    assert (project.field(job, "rework_count"), project.field(job, "rework_reason")) == (1, reason)
    start_job(project.workspace, job.id, BOT)
    assert (project.field(job, "rework_count"), project.field(job, "rework_reason")) == (2, "It was started again.")
    project.record(job)
    project.output(job)
    assert project.complete(job).done
    assert project.field(job, "rework_count") == 2


def test_a_refusal_that_says_nothing_about_the_work_is_no_rework(project: Project) -> None:
    job = project.add(stakes="low")
    for _ in range(5):
        project.complete(job)
    assert (project.field(job, "iteration"), project.field(job, "rework_count")) == (3, 3)


def test_a_reason_that_somebody_wrote_is_not_tampering(project: Project) -> None:
    job = project.add_edited({'rework_reason: ""': "rework_reason: The API has changed."})
    project.rewrite(job, "The API has changed.", "The API has changed twice.")
    project.output(job)
    assert project.complete(job).done


@pytest.mark.parametrize("collecting", [False, True], ids=["reward-eval", "truth-eval"])
def test_evaluating_a_done_job_writes_what_it_prints(project: Project, collecting: bool) -> None:
    job = project.add()
    project.output(job)
    assert project.complete(job).done
    project.note_progress(job)
    project.output(job, "")
    found = project.record(job, collecting=collecting)
    fields = project.read(job).document.fields
    assert (fields["status"], fields["truth_last_status"], found.truth.passed) == ("done", "fail", False)
    assert fields["truth_last_failures"] == [reason.message for reason in found.truth.reasons]
    assert fields["reward_last_score"] == found.score.total
    assert str(fields["reward_last_next_action"]).startswith(found.next_action)
    project.output(job)
    project.record(job)
    assert project.field(job, "truth_last_status") == "pass"
    assert project.complete(job).done


def test_the_execution_log_asks_for_successful_runs(project: Project) -> None:
    job = project.add("It is good.\n  check: run test -s notes.txt")
    project.record(job)
    assert (project.component(job, "execution_log").got, project.component(job, "execution_log").applies) == (0, True)
    (project.workspace.root / "notes.txt").write_text("Good.\n")
    project.record(job)
    assert project.component(job, "execution_log").got == 10


def test_a_job_that_people_alone_decide_gets_one_answer_from_score_and_hint(project: Project) -> None:
    job = project.add("It reads well.\n  check: manual")
    project.rewrite(job, "## Verification\n", "## Verification\n\nTwo people read it aloud.\n")
    project.output(job)
    sign_off(project.workspace, project.read(job), "AC-1", "I read it.", ADA)
    project.record(job)
    assert not project.component(job, "execution_log").applies
    assert project.evaluate(job).next_action.startswith("Final check:")


def test_if_a_run_was_agreed_to_the_score_asks_for_it_as_the_gate_does_though_people_decide(project: Project) -> None:
    """As in the plans of the original tool, which all have this check."""
    check = "  - work_item_execution_logged\n"
    job = project.add_edited({"truth_checks:\n": f"truth_checks:\n{check}"}, "It reads well.\n  check: manual")
    project.output(job)
    sign_off(project.workspace, project.read(job), "AC-1", "I read it.", ADA)
    truth = next(gate for gate in project.evaluate(job).gates if gate.gate == "truth")
    assert [reason.code for reason in truth.reasons] == [GateCode.EXECUTION_NOT_LOGGED]
    assert truth.next == f"donewhen run {job.id}"
    component = project.component(job, "execution_log")
    assert (component.got, component.applies) == (0, True)
    run_as_evidence(project.workspace, project.read(job), ["true"], BOT)
    assert project.component(job, "execution_log").got == 10
    assert project.complete(job).done


# Tracker and dashboard

REFRESH = "Refresh the task tracker and the dashboard."


def damaged(project: Project, view: str) -> Path:
    """The path of a view."""
    return tracker_path(project.workspace) if view == "tracker" else dashboard_path(project.workspace, view)


def views_in(evaluation: Evaluation) -> Component:
    return next(part for part in evaluation.score.components if part.name == "views")


@pytest.mark.parametrize("view", ["tracker", "html", "json"])
@pytest.mark.parametrize("damage", ["edited", "removed"])
def test_a_view_that_was_edited_costs_points_before_it_is_rewritten_and_the_sixth_hint_says_so(
    project: Project, view: str, damage: str
) -> None:
    job = project.add()
    project.output(job)
    project.record(job)
    path = damaged(project, view)
    text = path.read_text()
    path.write_text(text.replace("in_progress", "done")) if damage == "edited" else path.unlink()
    found = project.record(job)
    assert (views_in(found).applies, views_in(found).got) == (True, 5)
    assert found.next_action == REFRESH
    assert str(project.field(job, "reward_last_next_action")).startswith(REFRESH)
    assert project.field(job, "reward_last_score") == found.score.total
    again = project.record(job)
    assert (views_in(again).got, again.next_action.startswith("Final check:")) == (10, True)


def test_an_edited_view_is_seen_by_complete_too(project: Project) -> None:
    job = project.add_edited({"reward_target: 80": "reward_target: 100"})
    project.output(job)
    project.note_progress(job)
    damaged(project, "tracker").write_text("nothing")
    refused = project.complete(job)
    assert (refused.done, refused.evaluation and views_in(refused.evaluation).got) == (False, 5)
    assert project.complete(job).done


def test_a_view_that_is_only_outdated_is_rebuilt_and_costs_nothing(project: Project) -> None:
    job = project.add()
    project.output(job)
    project.rewrite(job, "title: Parser", "title: Reader")
    assert views_in(project.record(job)).got == 10
    notes = damaged(project, "tracker")
    notes.write_text(notes.read_text().rstrip("\n") + "a note of a person\n")
    assert views_in(project.record(job)).got == 10


def test_a_view_that_cannot_be_rebuilt_costs_points(project: Project) -> None:
    job = project.add()
    project.output(job)
    project.record(job)
    for view in ("json", "html"):
        damaged(project, view).unlink()
        damaged(project, view).mkdir()
    for _ in range(2):
        found = project.record(job)
        assert (views_in(found).got, found.next_action) == (5, REFRESH)


def test_views_that_were_never_written_in_this_clone_are_not_stale(project: Project, tmp_path: Path, git: Any) -> None:
    job = project.add()
    project.output(job)
    project.record(job)
    root = project.workspace.root
    (root / ".gitignore").write_text("jobs/outputs/\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "All")
    git(tmp_path, "clone", "-q", str(root), "clone")
    clone = find_workspace(tmp_path / "clone")
    there = clone.job(job.id)
    found = evaluate(facts_of(clone, there))
    assert not views_in(found).applies
    assert found.next_action != REFRESH
    assert views_in(evaluate_and_record(clone, job.id, BOT, collecting=True).evaluation).got == 10
    tracker_path(clone).unlink()
    assert views_in(evaluate(facts_of(clone, clone.job(job.id)))).got == 5


def test_in_ci_the_views_are_left_out(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    job = project.add()
    project.output(job)
    project.record(job)
    damaged(project, "tracker").unlink()
    monkeypatch.setenv("CI", "true")
    found = project.evaluate(job)
    assert not views_in(found).applies
    assert found.next_action.startswith("Final check:")
    assert project.complete(job).done
