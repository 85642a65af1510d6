"""PlanBasedChecker: every step of the latest plan is done, or cancelled with a reason."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from donewhen.completion import (
    PlanBasedChecker,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
    run_check,
)
from donewhen.contrib.tools.planning import Plan, PlanStep
from donewhen.runtime import Session
from donewhen.testing import make_context
from sentences import assert_sentences

NOTE = (
    "You have {open} incomplete task(s) out of {total}. Please either complete all remaining tasks or update the "
    "plan to remove tasks that are no longer needed before producing output: {titles}"
)


@dataclass(frozen=True)
class MyPlan:
    steps: Any = ()


@dataclass(frozen=True)
class MyStep:
    title: Any = "Mine"
    status: Any = "pending"
    reason: Any = None


def check(*steps: object, **settings: Any) -> TaskCompletionResult:
    return PlanBasedChecker(plan_type=MyPlan, **settings).check(make_context(MyPlan(tuple(steps))))


def check_steps(steps: object, **settings: Any) -> TaskCompletionResult:
    return PlanBasedChecker(plan_type=MyPlan, **settings).check(make_context(MyPlan(steps)))


def plan_of(*steps: PlanStep, dropped: tuple[PlanStep, ...] = ()) -> Plan:
    return Plan("Objective", steps=steps, dropped=dropped)


class TestTheTable:
    def test_without_a_plan_type_there_is_nothing_to_check(self) -> None:
        open_plan = plan_of(PlanStep(1, "Open"))
        result = PlanBasedChecker().check(make_context(open_plan))
        assert result == TaskCompletionResult.ok("No planning tools available.")

    def test_a_session_without_the_plan_slice_is_complete(self) -> None:
        result = PlanBasedChecker(plan_type=Plan).check(make_context())
        assert result == TaskCompletionResult.ok("No plan has been created.")

    def test_a_registered_slice_without_a_plan_is_complete(self) -> None:
        session = Session()
        session[Plan].seed(())
        assert Plan in session
        result = PlanBasedChecker(plan_type=Plan).check(TaskCompletionContext(session=session))
        assert result == TaskCompletionResult.ok("No plan has been created.")

    def test_a_plan_of_another_type_is_not_looked_at(self) -> None:
        result = PlanBasedChecker(plan_type=MyPlan).check(make_context(plan_of(PlanStep(1, "Open"))))
        assert result == TaskCompletionResult.ok("No plan has been created.")

    @pytest.mark.parametrize("count", [0, 1, 2, 7])
    def test_a_plan_whose_steps_are_all_done_is_complete(self, count: int) -> None:
        steps = (PlanStep(number, f"Step {number}", "done") for number in range(count))
        result = PlanBasedChecker(plan_type=Plan).check(make_context(plan_of(*steps)))
        assert result == TaskCompletionResult.ok(f"All {count} task(s) in the plan are complete.")

    def test_one_open_step_is_named(self) -> None:
        plan = plan_of(PlanStep(1, "Read", "done"), PlanStep(2, "Write tests", "in_progress"))
        result = PlanBasedChecker(plan_type=Plan).check(make_context(plan))
        assert result == TaskCompletionResult.incomplete(
            NOTE.format(open=1, total=2, titles="Write tests"), code=ReasonCode.PLAN_INCOMPLETE
        )

    @pytest.mark.parametrize(
        ("count", "titles"), [(2, "T1, T2"), (3, "T1, T2, T3"), (4, "T1, T2, T3..."), (9, "T1, T2, T3...")]
    )
    def test_at_most_three_titles_are_listed_and_dots_only_for_more(self, count: int, titles: str) -> None:
        steps = [PlanStep(number, f"T{number}") for number in range(1, count + 1)]
        done = PlanStep(99, "Done", "done")
        result = PlanBasedChecker(plan_type=Plan).check(make_context(plan_of(done, *steps)))
        assert result.feedback == NOTE.format(open=count, total=count + 1, titles=titles)

    def test_the_latest_plan_counts(self) -> None:
        old, new = plan_of(PlanStep(1, "Old")), plan_of(PlanStep(1, "New", "done"))
        assert PlanBasedChecker(plan_type=Plan).check(make_context(old, new)).complete is True
        assert PlanBasedChecker(plan_type=Plan).check(make_context(new, old)).complete is False


class TestCustomPlans:
    @pytest.mark.parametrize("status", ["pending", "in_progress"])
    def test_an_open_step_of_a_custom_plan_is_incomplete(self, status: str) -> None:
        assert check(MyStep("Mine", status)).feedback == NOTE.format(open=1, total=1, titles="Mine")

    def test_a_done_step_of_a_custom_plan_is_complete(self) -> None:
        assert check(MyStep(status="done")) == TaskCompletionResult.ok("All 1 task(s) in the plan are complete.")

    def test_a_plain_class_works_as_a_plan(self) -> None:
        class Bare:
            def __init__(self) -> None:
                self.steps = [SimpleNamespace(title="Look", status="done"), SimpleNamespace(title="Leap", status="x")]

        result = PlanBasedChecker(plan_type=Bare).check(make_context(Bare()))
        assert (result.feedback or "").startswith(NOTE.format(open=1, total=2, titles="Leap"))

    @pytest.mark.parametrize("collection", [list, tuple, frozenset, deque], ids=lambda one: one.__name__)
    def test_steps_may_be_in_any_collection(self, collection: type) -> None:
        assert check_steps(collection([MyStep(status="done"), MyStep("B", "done")])).complete is True
        result = check_steps(collection([MyStep("A", "done"), MyStep("B")]))
        assert result.feedback == NOTE.format(open=1, total=2, titles="B")

    def test_a_sequence_of_ones_own_is_read(self) -> None:
        class Steps(Sequence[MyStep]):
            steps = (MyStep("A", "done"), MyStep("B"))

            def __len__(self) -> int:
                return 2

            def __getitem__(self, index: Any) -> Any:
                return self.steps[index]

        for _ in range(2):
            assert check_steps(Steps()).feedback == NOTE.format(open=1, total=2, titles="B")

    def test_a_plan_that_is_a_dict_is_read_by_its_keys(self) -> None:
        class DictPlan(dict[str, Any]):
            pass

        checker = PlanBasedChecker(plan_type=DictPlan)
        assert checker.check(make_context(DictPlan(steps=[{"title": "A", "status": "done"}]))).complete is True
        assert checker.check(make_context(DictPlan(steps=[{"title": "A", "status": "pending"}]))).complete is False


class TestDictSteps:
    @pytest.mark.parametrize("status", ["pending", "in_progress"])
    def test_a_dict_step_with_an_open_status_is_incomplete(self, status: str) -> None:
        result = check({"title": "Read", "status": "done"}, {"title": "Write", "status": status})
        assert result.feedback == NOTE.format(open=1, total=2, titles="Write")
        assert result.code is ReasonCode.PLAN_INCOMPLETE

    def test_dict_steps_that_are_done_are_complete(self) -> None:
        result = check({"title": "Read", "status": "done"}, {"status": "done"})
        assert result == TaskCompletionResult.ok("All 2 task(s) in the plan are complete.")

    def test_dict_steps_and_objects_may_be_mixed(self) -> None:
        result = check(MyStep("A", "done"), {"title": "B", "status": "done"}, MyStep("C"), {"title": "D"})
        assert (result.feedback or "").startswith(NOTE.format(open=2, total=4, titles="C, D"))

    def test_a_dict_step_that_is_cancelled_with_a_reason_is_closed(self) -> None:
        result = check({"title": "Old", "status": "cancelled", "reason": "not wanted"}, {"status": "done"})
        assert (result.feedback or "").startswith("All 2 task(s) in the plan are complete.")
        assert_sentences(result.feedback)


class StrStatus(enum.StrEnum):
    DONE = "done"
    PENDING = "pending"


class PlainStatus(enum.Enum):
    DONE = "done"
    PENDING = "pending"
    CANCELLED = "cancelled"


class NumberStatus(enum.Enum):
    DONE = 1


class TestStatuses:
    @pytest.mark.parametrize("kind", [StrStatus, PlainStatus], ids=lambda one: one.__name__)
    @pytest.mark.parametrize(
        "make", [lambda status: MyStep("A", status), lambda status: {"title": "A", "status": status}]
    )
    def test_an_enum_status_counts_by_its_value(self, kind: Any, make: Any) -> None:
        assert check(make(kind.DONE)).complete is True
        assert check(make(kind.PENDING)) == TaskCompletionResult.incomplete(
            NOTE.format(open=1, total=1, titles="A"), code=ReasonCode.PLAN_INCOMPLETE
        )

    def test_an_enum_whose_value_says_nothing_is_unknown_whatever_its_name(self) -> None:
        result = check(MyStep("A", NumberStatus.DONE))
        assert result.complete is False
        assert (result.feedback or "").startswith(NOTE.format(open=1, total=1, titles="A"))
        assert_sentences(result.feedback)

    def test_an_enum_may_say_cancelled(self) -> None:
        assert check(MyStep("A", PlainStatus.CANCELLED, "moot")).complete is True
        assert check(MyStep("A", PlainStatus.CANCELLED)).complete is False

    @pytest.mark.parametrize("step", [SimpleNamespace(title="A"), {"title": "A"}], ids=["object", "dict"])
    def test_a_step_without_a_status_is_incomplete(self, step: object) -> None:
        result = check(MyStep("B", "done"), step)
        assert (result.feedback or "").startswith(NOTE.format(open=1, total=2, titles="A"))
        assert_sentences(result.feedback)
        assert result.code is ReasonCode.PLAN_INCOMPLETE

    @pytest.mark.parametrize(
        "status",
        ["Done", "DONE", "done ", "complete", "finished", "", None, True, 1, 0, ["done"], ("done",), b"done"],
        ids=lambda value: repr(value).split(" at 0x")[0],
    )
    @pytest.mark.parametrize("as_dict", [False, True], ids=["object", "dict"])
    def test_an_unknown_status_is_incomplete_and_named(self, status: object, as_dict: bool) -> None:
        step: object = {"title": "A", "status": status} if as_dict else MyStep("A", status)
        result = check(step)
        assert result.complete is False
        assert (result.feedback or "").startswith(NOTE.format(open=1, total=1, titles="A"))
        assert repr(status) in (result.feedback or "")
        assert_sentences(result.feedback)

    def test_an_open_status_is_no_remark(self) -> None:
        feedback = check(MyStep("A", "pending"), MyStep("B", "in_progress")).feedback
        assert feedback == NOTE.format(open=2, total=2, titles="A, B")

    def test_at_most_three_remarks_are_made(self) -> None:
        feedback = check(*(MyStep(f"S{number}", "odd") for number in range(5))).feedback or ""
        assert_sentences(feedback)

    def test_a_long_or_hostile_status_is_shown_short_and_plain(self) -> None:
        feedback = check(MyStep("A", "\x1b[2Jx\n" + "y" * 500)).feedback or ""
        assert feedback.count("\n") == 1
        assert "\x1b" not in feedback
        assert len(feedback.split("\n")[1]) < 100

    @pytest.mark.parametrize(
        "step", ["done", None, 7, ("A", "done"), object()], ids=lambda value: repr(value).split(" at 0x")[0]
    )
    def test_a_step_that_is_no_step_at_all_is_incomplete(self, step: object) -> None:
        result = check(step)
        assert result.complete is False
        assert_sentences(result.feedback)

    def test_a_status_that_raises_is_a_gate_error_and_never_a_pass(self) -> None:
        class Broken:
            title = "A"

            @property
            def status(self) -> str:
                raise RuntimeError("database gone")

        result = run_check(PlanBasedChecker(plan_type=MyPlan), make_context(MyPlan((Broken(),))))
        assert result.code is ReasonCode.GATE_ERROR
        assert "database gone" in (result.feedback or "")

    def test_a_status_that_raises_attribute_error_is_a_missing_status(self) -> None:
        class Broken:
            title = "A"

            @property
            def status(self) -> str:
                raise AttributeError("gone")

        assert_sentences(check(Broken()).feedback or "")


class TestClosedWithReason:
    @pytest.mark.parametrize("status", ["cancelled", "removed"])
    def test_a_step_closed_with_a_reason_is_complete_and_reported(self, status: str) -> None:
        assert check(MyStep("A", "done"), MyStep("B", status, "no longer needed")) == TaskCompletionResult.ok(
            "All 2 task(s) in the plan are complete. 1 cancelled: B (no longer needed)."
        )

    @pytest.mark.parametrize("status", ["cancelled", "removed"])
    @pytest.mark.parametrize(
        "reason", [None, "", "  \n", 7, ["because"]], ids=lambda value: repr(value).split(" at 0x")[0]
    )
    def test_a_step_closed_without_a_reason_is_incomplete(self, status: str, reason: object) -> None:
        result = check(MyStep("A", "done"), MyStep("B", status, reason))
        assert result == TaskCompletionResult.incomplete(
            NOTE.format(open=1, total=2, titles="B") + f"\nNote: B is {status} without a reason.",
            code=ReasonCode.PLAN_INCOMPLETE,
        )

    def test_a_step_without_a_reason_field_needs_one_as_well(self) -> None:
        assert check({"title": "B", "status": "cancelled"}).complete is False
        assert check(SimpleNamespace(title="B", status="removed")).complete is False

    def test_at_most_three_cancelled_steps_are_listed(self) -> None:
        feedback = check(*(MyStep(f"S{number}", "removed", "moot") for number in range(4))).feedback or ""
        assert feedback.startswith("All 4 task(s) in the plan are complete.")
        assert_sentences(feedback)

    def test_a_reason_is_shown_short_and_on_one_line(self) -> None:
        feedback = check(MyStep("B", "cancelled", "because\n\x1b[31m" + "z" * 300)).feedback or ""
        assert "\n" not in feedback
        assert "\x1b" not in feedback
        assert len(feedback) < 160

    def test_cancelled_steps_are_not_mentioned_while_others_are_open(self) -> None:
        feedback = check(MyStep("A"), MyStep("B", "cancelled", "moot")).feedback
        assert feedback == NOTE.format(open=1, total=2, titles="A")


class TestUnreadablePlans:
    def test_a_plan_without_steps_attribute_is_a_gate_error(self) -> None:
        class Stepless:
            pass

        result = PlanBasedChecker(plan_type=Stepless).check(make_context(Stepless()))
        assert result.complete is False
        assert result.code is ReasonCode.GATE_ERROR
        assert_sentences(result.feedback or "")

    @pytest.mark.parametrize(
        "steps",
        [None, "done", b"done", 7, {}, {"a": {"status": "done"}}, object(), list, True],
        ids=lambda value: repr(value).split(" at 0x")[0],
    )
    def test_steps_that_are_no_collection_of_steps_are_a_gate_error(self, steps: object) -> None:
        result = check_steps(steps)
        assert result.complete is False
        assert result.code is ReasonCode.GATE_ERROR
        assert str(type(steps).__name__) in (result.feedback or "")
        assert_sentences(result.feedback or "")

    @pytest.mark.parametrize(
        "make",
        [
            lambda: (MyStep("A", status) for status in ("done", "done")),
            lambda: (MyStep("A", status) for status in ("done", "pending")),
            lambda: iter([MyStep("A", "done")]),
            lambda: map(MyStep, ["A"], ["done"]),
            lambda: (_ for _ in ()),
        ],
        ids=["all done", "one open", "list iterator", "map", "empty"],
    )
    def test_steps_that_can_be_read_only_once_are_never_a_pass(self, make: Any) -> None:
        context = make_context(MyPlan(make()))
        checker = PlanBasedChecker(plan_type=MyPlan)
        for _ in range(3):
            result = checker.check(context)
            assert result.complete is False
            assert result.code is ReasonCode.GATE_ERROR
            assert_sentences(result.feedback or "")

    def test_something_with_a_length_that_can_not_be_read_is_never_a_pass(self) -> None:
        class Counted:
            def __len__(self) -> int:
                return 0

        assert check_steps(Counted()).code is ReasonCode.GATE_ERROR

    def test_an_iterable_without_a_length_is_never_a_pass(self) -> None:
        class Endless:
            def __iter__(self) -> Iterator[MyStep]:
                while True:
                    yield MyStep("A", "done")

        assert check_steps(Endless()).code is ReasonCode.GATE_ERROR

    def test_a_sized_iterable_that_can_be_read_only_once_is_not_a_pass_the_second_time(self) -> None:
        class Progress:
            """As a progress bar around a generator: it has a length, and can be read once."""

            def __init__(self) -> None:
                self._steps = iter([MyStep("A", "done"), MyStep("B", "pending")])

            def __len__(self) -> int:
                return 2

            def __iter__(self) -> Iterator[MyStep]:
                return self._steps

        context = make_context(MyPlan(Progress()))
        checker = PlanBasedChecker(plan_type=MyPlan)
        assert checker.check(context).complete is False
        assert checker.check(context).complete is False

    def test_steps_that_raise_are_a_gate_error(self) -> None:
        class Lazy:
            @property
            def steps(self) -> Any:
                raise RuntimeError("not loaded")

        result = run_check(PlanBasedChecker(plan_type=Lazy), make_context(Lazy()))
        assert result.code is ReasonCode.GATE_ERROR


class TestTitles:
    @pytest.mark.parametrize(
        ("title", "shown"),
        [
            ("\x1b[31mRed\x1b[0m", "Red"),
            ("Two\nlines", "Two lines"),
            ("Tab\tand\r\nmore", "Tab and more"),
            ("  padded  ", "padded"),
            ("\x1b]0;owned\x07Title", "Title"),
            ("left\u202eright", "leftright"),
            ("bell\x07", "bell"),
            ("x" * 200, "x" * 119 + "…"),
        ],
        ids=lambda value: repr(value).split(" at 0x")[0],
    )
    def test_a_hostile_title_is_one_plain_line(self, title: str, shown: str) -> None:
        assert check(MyStep(title)).feedback == NOTE.format(open=1, total=1, titles=shown)

    @pytest.mark.parametrize("title", ["", "   ", None, 7, ["a"]], ids=lambda value: repr(value).split(" at 0x")[0])
    def test_a_step_without_a_usable_title_is_counted_all_the_same(self, title: object) -> None:
        expected = NOTE.format(open=1, total=1, titles="a step without a title")
        assert check(MyStep(title)).feedback == expected
        assert check({"title": title, "status": "pending"}).feedback == expected


class TestStrict:
    def test_a_required_plan_that_is_missing_is_incomplete(self) -> None:
        result = PlanBasedChecker(plan_type=Plan, require_plan=True).check(make_context())
        assert result == TaskCompletionResult.incomplete(
            "No plan has been created. Set up a plan for the task, then work through its steps.",
            code=ReasonCode.PLAN_MISSING,
        )

    def test_a_required_plan_that_is_there_is_checked_as_usual(self) -> None:
        checker = PlanBasedChecker(plan_type=Plan, require_plan=True)
        assert checker.check(make_context(plan_of())).complete is True
        assert checker.check(make_context(plan_of(PlanStep(1, "A", "done")))).complete is True
        assert checker.check(make_context(plan_of(PlanStep(1, "A")))).complete is False

    def test_an_empty_plan_can_be_refused(self) -> None:
        result = check(allow_empty=False)
        assert (result.complete, result.code) == (False, ReasonCode.PLAN_EMPTY)
        assert_sentences(result.feedback)
        assert check(MyStep(status="done"), allow_empty=False).complete is True
        assert check(allow_empty=True).complete is True

    def test_a_plan_of_cancelled_steps_only_is_not_empty(self) -> None:
        assert check(MyStep("A", "removed", "moot"), allow_empty=False).complete is True

    @pytest.mark.parametrize(
        "setting",
        [{"require_plan": True}, {"allow_empty": False}, {"allow_shrinking": False}],
        ids=lambda value: repr(value).split(" at 0x")[0],
    )
    def test_a_strict_checker_without_a_plan_type_is_refused(self, setting: dict[str, bool]) -> None:
        with pytest.raises(ValueError) as caught:
            PlanBasedChecker(**setting)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("plan_type", ["Plan", 7, plan_of()], ids=lambda value: repr(value).split(" at 0x")[0])
    def test_a_plan_type_that_is_no_class_is_refused(self, plan_type: Any) -> None:
        with pytest.raises(TypeError) as caught:
            PlanBasedChecker(plan_type=plan_type)
        assert_sentences(caught.value)


@dataclass(frozen=True)
class ShrunkPlan:
    steps: tuple[MyStep, ...] = (MyStep("A", "done"),)
    dropped: Any = field(default=())


class TestShrinking:
    def test_shrinking_is_reported(self) -> None:
        plan = plan_of(PlanStep(3, "A", "done"), dropped=(PlanStep(1, "Write tests"), PlanStep(2, "Docs")))
        assert PlanBasedChecker(plan_type=Plan).check(make_context(plan)) == TaskCompletionResult.ok(
            "All 1 task(s) in the plan are complete. The plan shrank after work began; dropped: Write tests, Docs."
        )

    def test_shrinking_is_refused_when_strict(self) -> None:
        plan = plan_of(PlanStep(3, "A", "done"), dropped=(PlanStep(1, "Write tests"), PlanStep(2, "Docs")))
        result = PlanBasedChecker(plan_type=Plan, allow_shrinking=False).check(make_context(plan))
        assert (result.complete, result.code) == (False, ReasonCode.PLAN_SHRUNK)
        assert_sentences(result.feedback)

    def test_a_plan_that_did_not_shrink_passes_when_strict(self) -> None:
        checker = PlanBasedChecker(plan_type=Plan, require_plan=True, allow_empty=False, allow_shrinking=False)
        assert checker.check(make_context(plan_of(PlanStep(1, "A", "done")))) == TaskCompletionResult.ok(
            "All 1 task(s) in the plan are complete."
        )

    def test_open_steps_are_told_before_shrinking(self) -> None:
        plan = plan_of(PlanStep(3, "A"), dropped=(PlanStep(1, "Write tests"),))
        result = PlanBasedChecker(plan_type=Plan, allow_shrinking=False).check(make_context(plan))
        assert result.code is ReasonCode.PLAN_INCOMPLETE

    def test_at_most_three_dropped_steps_are_listed(self) -> None:
        plan = plan_of(PlanStep(9, "A", "done"), dropped=tuple(PlanStep(n, f"D{n}") for n in range(4)))
        strict = PlanBasedChecker(plan_type=Plan, allow_shrinking=False).check(make_context(plan)).feedback or ""
        assert_sentences(strict)
        assert strict.endswith(": D0, D1, D2...")

    @pytest.mark.parametrize("collection", [list, tuple], ids=lambda one: one.__name__)
    def test_a_custom_plan_may_say_what_it_dropped(self, collection: Any) -> None:
        plan = ShrunkPlan(dropped=collection([{"title": "B"}, MyStep("C"), object()]))
        result = PlanBasedChecker(plan_type=ShrunkPlan).check(make_context(plan))
        assert_sentences(result.feedback or "")

    def test_a_custom_plan_that_does_not_know_of_dropping_did_not_shrink(self) -> None:
        assert check(MyStep("A", "done"), allow_shrinking=False).complete is True

    @pytest.mark.parametrize("dropped", [None, (), []], ids=lambda value: repr(value).split(" at 0x")[0])
    def test_a_plan_that_dropped_nothing_did_not_shrink(self, dropped: object) -> None:
        result = PlanBasedChecker(plan_type=ShrunkPlan, allow_shrinking=False).check(
            make_context(ShrunkPlan(dropped=dropped))
        )
        assert result == TaskCompletionResult.ok("All 1 task(s) in the plan are complete.")

    @pytest.mark.parametrize(
        "make", [lambda: frozenset({MyStep("B")}), lambda: (MyStep(title) for title in "B")], ids=["set", "generator"]
    )
    def test_dropped_steps_that_can_not_be_read_are_no_pass_when_strict(self, make: Any) -> None:
        strict = PlanBasedChecker(plan_type=ShrunkPlan, allow_shrinking=False)
        context = make_context(ShrunkPlan(dropped=make()))
        assert strict.check(context).complete is False
        assert strict.check(context).complete is False

    def test_dropped_steps_that_can_not_be_read_are_not_reported_when_lenient(self) -> None:
        context = make_context(ShrunkPlan(dropped=frozenset({MyStep("B")})))
        assert PlanBasedChecker(plan_type=ShrunkPlan).check(context) == TaskCompletionResult.ok(
            "All 1 task(s) in the plan are complete."
        )

    def test_cancellations_and_shrinking_are_both_reported(self) -> None:
        plan = plan_of(PlanStep(1, "A", "done"), PlanStep(2, "B", "cancelled", "moot"), dropped=(PlanStep(3, "C"),))
        assert_sentences(PlanBasedChecker(plan_type=Plan).check(make_context(plan)).feedback)
