"""The plan and how events change it."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import pytest

from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import (
    AddSteps,
    CancelStep,
    Plan,
    PlanError,
    PlanStep,
    SetupPlan,
    UpdateStep,
)
from donewhen.runtime import InProcessDispatcher, Session
from sentences import assert_sentences


@pytest.fixture
def session() -> Session:
    session = Session(bus=InProcessDispatcher())
    PlanningToolsSection(session=session)
    return session


def apply(session: Session, *events: object) -> Plan:
    for event in events:
        session.dispatch(event).raise_if_errors()
    plan = session[Plan].latest()
    assert plan is not None
    return plan


def refused(session: Session, event: object) -> str:
    """Why the event was refused; the plan must be as it was."""
    before = session[Plan].all()
    result = session.dispatch(event)
    assert result.ok is False
    assert result.handled == 0
    assert session[Plan].all() == before
    (failure,) = result.errors
    assert isinstance(failure.error, PlanError)
    return str(failure.error)


def steps(plan: Plan) -> list[tuple[int, str, str]]:
    return [(step.step_id, step.title, step.status) for step in plan.steps]


class TestSetup:
    def test_a_plan_has_numbered_pending_steps(self, session: Session) -> None:
        plan = apply(session, SetupPlan(" Ship it ", ("Code", " Write\n the  tests ")))
        assert plan == Plan(
            "Ship it", "active", (PlanStep(1, "Code", "pending"), PlanStep(2, "Write the tests", "pending"))
        )

    @pytest.mark.parametrize(
        "event",
        [
            SetupPlan("", ("a",)),
            SetupPlan("  ", ("a",)),
            SetupPlan("x", ()),
            SetupPlan("x", ("a", " ")),
        ],
        ids=repr,
    )
    def test_a_plan_without_substance_is_refused(self, session: Session, event: SetupPlan) -> None:
        assert_sentences(refused(session, event))

    def test_there_is_one_plan_at_a_time(self, session: Session) -> None:
        apply(session, SetupPlan("x", ("a",)), SetupPlan("y", ("b",)))
        assert [plan.objective for plan in session[Plan].all()] == ["y"]

    def test_starting_over_before_work_began_drops_nothing(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b")), SetupPlan("y", ("c",)))
        assert plan.dropped == ()
        assert steps(plan) == [(3, "c", "pending")]

    @pytest.mark.parametrize("begun", ["in_progress", "done"])
    def test_starting_over_after_work_began_keeps_the_open_steps_in_mind(self, session: Session, begun: Any) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b", "c")), UpdateStep(1, status=begun), SetupPlan("y", ("c", "d")))
        open_steps = {"in_progress": ["a", "b"], "done": ["b"]}[begun]
        assert [step.title for step in plan.dropped] == open_steps
        assert steps(plan) == [(4, "c", "pending"), (5, "d", "pending")]

    def test_a_removed_step_is_work_that_began(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b")), CancelStep(1, "moot"), SetupPlan("y", ("c",)))
        assert [step.title for step in plan.dropped] == ["b"]

    def test_closed_steps_are_not_missed(self, session: Session) -> None:
        plan = apply(
            session,
            SetupPlan("x", ("a", "b")),
            UpdateStep(1, status="done"),
            CancelStep(2, "moot"),
            SetupPlan("y", ("c",)),
        )
        assert plan.dropped == ()

    @pytest.mark.parametrize("title", ["Write Tests", "write  tests", " WRITE\ttests "])
    def test_a_title_is_the_same_whatever_its_case_and_spacing(self, session: Session, title: str) -> None:
        plan = apply(
            session, SetupPlan("x", ("a", "Write tests")), UpdateStep(1, status="done"), SetupPlan("y", (title,))
        )
        assert plan.dropped == ()

    def test_what_was_dropped_stays_so_when_the_plan_is_made_once_more(self, session: Session) -> None:
        plan = apply(
            session,
            SetupPlan("x", ("a", "b")),
            UpdateStep(1, status="done"),
            SetupPlan("y", ("c",)),
            SetupPlan("z", ("c",)),
        )
        assert [step.title for step in plan.dropped] == ["b"]

    def test_a_dropped_step_comes_back_by_its_title(self, session: Session) -> None:
        plan = apply(
            session,
            SetupPlan("x", ("a", "b")),
            UpdateStep(1, status="done"),
            SetupPlan("y", ("c",)),
            SetupPlan("z", ("c", "B")),
        )
        assert plan.dropped == ()

    def test_of_two_open_steps_with_one_title_each_is_missed(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b", "b")), UpdateStep(1, status="done"), SetupPlan("y", ("b",)))
        assert [step.title for step in plan.dropped] == ["b"]

    def test_of_two_open_steps_with_one_title_none_is_missed_when_both_are_there(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b", "b")), UpdateStep(1, status="done"), SetupPlan("y", ("b", "B")))
        assert plan.dropped == ()

    @pytest.mark.parametrize("event", [SetupPlan("y", ("a",)), AddSteps(("a",))], ids=repr)
    def test_the_first_step_of_a_plan_that_had_none_is_number_one(self, session: Session, event: object) -> None:
        session[Plan].seed(Plan("x"))
        assert steps(apply(session, event)) == [(1, "a", "pending")]

    def test_ids_are_never_given_twice(self, session: Session) -> None:
        plan = apply(
            session,
            SetupPlan("x", ("a", "b", "c")),
            UpdateStep(1, status="done"),
            SetupPlan("y", ("d",)),
            AddSteps(("e",)),
        )
        ids = [step.step_id for step in (*plan.steps, *plan.dropped)]
        assert len(set(ids)) == len(ids)
        assert steps(plan) == [(4, "d", "pending"), (5, "e", "pending")]


class TestAdd:
    def test_steps_are_put_at_the_end(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a",)), AddSteps(("b", " c ")))
        assert steps(plan) == [(1, "a", "pending"), (2, "b", "pending"), (3, "c", "pending")]

    def test_adding_reopens_a_finished_plan(self, session: Session) -> None:
        finished = apply(session, SetupPlan("x", ("a",)), UpdateStep(1, status="done"))
        assert finished.status == "completed"
        assert apply(session, AddSteps(("b",))).status == "active"

    def test_a_dropped_step_comes_back_by_its_title(self, session: Session) -> None:
        apply(session, SetupPlan("x", ("a", "b", "c")), UpdateStep(1, status="done"), SetupPlan("y", ("d",)))
        plan = apply(session, AddSteps((" B ",)))
        assert [step.title for step in plan.dropped] == ["c"]

    @pytest.mark.parametrize("titles", [(), ("",)], ids=repr)
    def test_nothing_can_not_be_added(self, session: Session, titles: tuple[str, ...]) -> None:
        apply(session, SetupPlan("x", ("a",)))
        assert_sentences(refused(session, AddSteps(titles)))

    def test_there_must_be_a_plan(self, session: Session) -> None:
        assert_sentences(refused(session, AddSteps(("a",))))


class TestUpdate:
    @pytest.mark.parametrize("status", ["pending", "in_progress", "done"])
    def test_a_status_is_set_and_the_title_stays(self, session: Session, status: Any) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b")), UpdateStep(2, status=status))
        assert steps(plan) == [(1, "a", "pending"), (2, "b", status)]

    def test_a_title_is_set_and_the_status_stays(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a",)), UpdateStep(1, status="done"), UpdateStep(1, title=" new\ntitle "))
        assert steps(plan) == [(1, "new title", "done")]

    def test_both_can_be_set_at_once(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a",)), UpdateStep(1, title="b", status="in_progress"))
        assert steps(plan) == [(1, "b", "in_progress")]

    def test_a_plan_whose_steps_are_all_closed_is_completed(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b")), UpdateStep(1, status="done"))
        assert plan.status == "active"
        assert apply(session, CancelStep(2, "moot")).status == "completed"
        assert apply(session, UpdateStep(1, status="pending")).status == "active"

    def test_a_plan_with_dropped_steps_is_not_completed(self, session: Session) -> None:
        plan = apply(
            session,
            SetupPlan("x", ("a", "b")),
            UpdateStep(1, status="done"),
            SetupPlan("y", ("c",)),
            UpdateStep(3, status="done"),
        )
        assert plan.status == "active"

    @pytest.mark.parametrize("status", ["pending", "in_progress", "done"])
    def test_reopening_a_cancelled_step_takes_its_reason_away(self, session: Session, status: Any) -> None:
        plan = apply(session, SetupPlan("x", ("a",)), CancelStep(1, "moot"), UpdateStep(1, status=status))
        assert plan.steps == (PlanStep(1, "a", status, None),)

    def test_renaming_a_cancelled_step_leaves_its_reason(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a",)), CancelStep(1, "moot"), UpdateStep(1, title="b"))
        assert plan.steps == (PlanStep(1, "b", "removed", "moot"),)

    def test_an_update_of_nothing_is_refused(self, session: Session) -> None:
        apply(session, SetupPlan("x", ("a",)))
        assert_sentences(refused(session, UpdateStep(1)))

    def test_an_empty_title_is_refused(self, session: Session) -> None:
        apply(session, SetupPlan("x", ("a",)))
        assert_sentences(refused(session, UpdateStep(1, title=" ")))

    @pytest.mark.parametrize("step_id", [0, 3, -1])
    def test_a_step_that_is_not_there_is_refused_with_those_that_are(self, session: Session, step_id: int) -> None:
        apply(session, SetupPlan("x", ("a", "b")))
        said = f"There is no step {step_id}; the plan has 1, 2."
        assert refused(session, UpdateStep(step_id, status="done")) == said
        assert refused(session, CancelStep(step_id, "moot")) == said

    def test_a_plan_without_steps_says_so(self, session: Session) -> None:
        session[Plan].seed(Plan("x"))
        assert_sentences(refused(session, UpdateStep(1, status="done")))

    def test_a_dropped_step_can_not_be_updated(self, session: Session) -> None:
        apply(session, SetupPlan("x", ("a", "b")), UpdateStep(1, status="done"), SetupPlan("y", ("c",)))
        assert_sentences(refused(session, UpdateStep(2, status="done")))

    def test_there_must_be_a_plan(self, session: Session) -> None:
        for event in (UpdateStep(1, status="done"), CancelStep(1, "moot")):
            assert_sentences(refused(session, event))


class TestCancel:
    def test_a_step_that_was_not_begun_is_removed(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a", "b")), CancelStep(1, " moot "))
        assert plan.steps == (PlanStep(1, "a", "removed", "moot"), PlanStep(2, "b"))

    def test_a_step_that_was_begun_is_cancelled(self, session: Session) -> None:
        plan = apply(session, SetupPlan("x", ("a",)), UpdateStep(1, status="in_progress"), CancelStep(1, "too hard"))
        assert plan.steps == (PlanStep(1, "a", "cancelled", "too hard"),)

    @pytest.mark.parametrize("reason", ["", " \n"])
    def test_a_reason_is_needed(self, session: Session, reason: str) -> None:
        apply(session, SetupPlan("x", ("a",)))
        assert_sentences(refused(session, CancelStep(1, reason)))

    def test_a_closed_step_can_not_be_cancelled(self, session: Session) -> None:
        apply(session, SetupPlan("x", ("a", "b", "c")), UpdateStep(1, status="done"), CancelStep(2, "moot"))
        assert_sentences(refused(session, CancelStep(1, "again")))
        assert_sentences(refused(session, CancelStep(2, "again")))

    def test_a_dropped_step_that_is_cancelled_is_accounted_for(self, session: Session) -> None:
        apply(
            session,
            SetupPlan("x", ("a", "b", "c")),
            UpdateStep(1, status="done"),
            UpdateStep(2, status="in_progress"),
            SetupPlan("y", ("d",)),
        )
        plan = apply(session, CancelStep(2, "too hard"))
        assert plan.steps[-1] == PlanStep(2, "b", "cancelled", "too hard")
        assert [step.title for step in plan.dropped] == ["c"]
        assert apply(session, CancelStep(3, "moot")).dropped == ()


class TestModels:
    @pytest.mark.parametrize(
        ("status", "closed"),
        [("pending", False), ("in_progress", False), ("done", True), ("cancelled", True), ("removed", True)],
    )
    def test_a_step_knows_whether_it_is_closed(self, status: Any, closed: bool) -> None:
        assert PlanStep(1, "a", status).closed is closed

    @pytest.mark.parametrize("thing", [Plan("x"), PlanStep(1, "a"), SetupPlan("x", ()), CancelStep(1, "r")], ids=repr)
    def test_everything_is_frozen(self, thing: Any) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            thing.status = "done"


class TestThreads:
    def test_no_update_is_lost_when_several_threads_change_the_plan(self, session: Session) -> None:
        threads, each = 4, 50
        apply(session, SetupPlan("x", tuple(f"s{number}" for number in range(threads * each))))
        start = threading.Barrier(threads)

        def work(first: int) -> None:
            start.wait(30)
            for step_id in range(first, first + each):
                session.dispatch(UpdateStep(step_id, status="done")).raise_if_errors()
                session.dispatch(AddSteps((f"more {step_id}",))).raise_if_errors()

        workers = [threading.Thread(target=work, args=(1 + number * each,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        plan = session[Plan].latest()
        assert plan is not None
        assert len(plan.steps) == 2 * threads * each
        assert sum(step.status == "done" for step in plan.steps) == threads * each
        assert len({step.step_id for step in plan.steps}) == len(plan.steps)
