"""Reducers return an operation and touch nothing; one that fails is reported and harms nobody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from donewhen.runtime import (
    Append,
    Clear,
    InProcessDispatcher,
    Replace,
    Session,
    SessionError,
    SliceOp,
    SliceView,
    append_all,
    replace_latest,
    upsert_by,
)
from sentences import assert_sentences


@dataclass(frozen=True)
class Task:
    id: int
    title: str = ""


@dataclass(frozen=True)
class Other:
    value: int = 0


@dataclass(frozen=True)
class Go:
    """An event."""


def session_with(reducer: Callable[[SliceView[Task], Go], SliceOp[Task] | None], *tasks: Task) -> Session:
    session = Session()
    session[Task].register(Go, reducer)
    session[Task].seed(tasks)
    return session


# --- operations


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Append(Task(3)), (Task(1), Task(2), Task(3))),
        (Replace((Task(4), Task(5))), (Task(4), Task(5))),
        (Replace(()), ()),
        (Clear(), ()),
        (None, (Task(1), Task(2))),
    ],
    ids=["append", "replace", "replace with nothing", "clear", "none"],
)
def test_a_reducers_operation_is_applied(operation: SliceOp[Task] | None, expected: tuple[Task, ...]) -> None:
    session = session_with(lambda view, event: operation, Task(1), Task(2))
    result = session.dispatch(Go())
    assert (result.handled, result.errors) == (1, ())
    assert session[Task].all() == expected
    assert session[Task].latest() == (expected[-1] if expected else None)


def test_a_reducer_sees_the_slice_and_the_event():
    seen: list[object] = []

    def look(view: SliceView[Task], event: Go) -> None:
        seen.extend([view.latest(), view.all(), len(view), list(view), event])

    session = session_with(look, Task(1), Task(2))
    event = Go()
    session.dispatch(event)
    assert seen == [Task(2), (Task(1), Task(2)), 2, [Task(1), Task(2)], event]


def test_a_reducer_sees_an_empty_slice_before_anything_was_written():
    seen: list[object] = []
    session = Session()
    session[Task].register(Go, lambda view, event: seen.extend([view.latest(), view.all(), len(view)]))
    session.dispatch(Go())
    assert seen == [None, (), 0]


def test_the_view_that_a_reducer_gets_offers_no_way_to_write():
    # What a reducer wrote through its view would stay even if it failed, and nobody would have checked it.
    offered: list[str] = []
    session = session_with(lambda view, event: offered.extend(dir(view)), Task(1))
    session.dispatch(Go())
    assert {name for name in offered if not name.startswith("_")} == {"all", "latest"}


def test_a_later_dispatch_sees_what_an_earlier_one_did():
    session = session_with(lambda view, event: Append(Task(len(view))))
    for _ in range(5):
        session.dispatch(Go())
    assert session[Task].all() == tuple(Task(number) for number in range(5))


# --- the ready-made ones


def test_append_all_keeps_every_event():
    session = Session()
    session[Task].register(Task, append_all)
    for task in (Task(1), Task(2), Task(1)):
        session.dispatch(task)
    assert session[Task].all() == (Task(1), Task(2), Task(1))


def test_replace_latest_keeps_the_newest_event_only():
    session = Session()
    session[Task].register(Task, replace_latest)
    session.dispatch(Task(1))
    session.dispatch(Task(2))
    assert session[Task].all() == (Task(2),)


def test_upsert_keeps_one_value_for_each_key_in_the_place_of_its_predecessor():
    session = Session()
    session[Task].register(Task, upsert_by(lambda task: task.id))
    for task in (Task(1, "a"), Task(2, "b"), Task(3, "c"), Task(2, "B"), Task(1, "A")):
        session.dispatch(task)
    assert session[Task].all() == (Task(1, "A"), Task(2, "B"), Task(3, "c"))


def test_upserting_an_equal_or_the_very_same_event_again_changes_nothing():
    session = Session()
    session[Task].register(Task, upsert_by(lambda task: task.id))
    task = Task(1, "a")
    for event in (task, task, Task(1, "a")):
        session.dispatch(event)
    assert session[Task].all() == (Task(1, "a"),)


def test_upserting_takes_the_new_value_even_if_it_is_equal_to_the_old():
    session = Session()
    session[Task].register(Task, upsert_by(lambda task: task.id))
    session.dispatch(Task(1))
    newer = Task(1)
    session.dispatch(newer)
    assert session[Task].latest() is newer


# --- failing


def test_a_reducer_that_raises_leaves_its_slice_unchanged_and_is_reported():
    def broken(view: SliceView[Task], event: Go) -> SliceOp[Task]:
        raise LookupError("no such step")

    session = session_with(broken, Task(1))
    result = session.dispatch(Go())
    assert result.ok is False
    assert result.handled == 0
    (failure,) = result.errors
    assert isinstance(failure.error, LookupError)
    assert "broken" in failure.handler
    assert "LookupError: no such step" in str(failure)
    assert session[Task].all() == (Task(1),)


def test_the_others_are_served_when_one_reducer_raises():
    session = Session()
    session[Task].register(Go, lambda view, event: Append(Task(1)))
    session[Other].register(Go, lambda view, event: 1 / 0)
    session[str].register(Go, lambda view, event: Append("served"))
    heard: list[Go] = []
    session.dispatcher.subscribe(Go, heard.append)  # type: ignore[attr-defined]
    result = session.dispatch(Go())
    assert result.handled == 3
    assert [type(failure.error) for failure in result.errors] == [ZeroDivisionError]
    assert session[Task].all() == (Task(1),)
    assert session[Other].all() == ()
    assert session[str].all() == ("served",)
    assert heard == [Go()]


def test_every_failure_of_a_dispatch_is_reported():
    session = Session()
    session[Task].register(Go, lambda view, event: [][0])
    session[Other].register(Go, lambda view, event: {}["x"])
    result = session.dispatch(Go())
    assert [type(failure.error) for failure in result.errors] == [IndexError, KeyError]
    with pytest.raises(ExceptionGroup) as caught:
        result.raise_if_errors()
    assert caught.value.exceptions == tuple(failure.error for failure in result.errors)


@pytest.mark.parametrize("answer", [Task(5), (Task(5),), True, Append, 0])
def test_a_reducer_that_returns_something_else_is_an_error(answer: object) -> None:
    session = session_with(lambda view, event: answer, Task(1))  # type: ignore[arg-type, return-value]
    (failure,) = session.dispatch(Go()).errors
    assert isinstance(failure.error, TypeError)
    assert_sentences(failure.error)
    assert session[Task].all() == (Task(1),)


@pytest.mark.parametrize("operation", [Append(Other()), Replace((Task(2), Other())), Append(None)])
def test_a_reducer_that_returns_a_value_of_another_type_is_an_error(operation: SliceOp[Task]) -> None:
    session = session_with(lambda view, event: operation, Task(1))
    (failure,) = session.dispatch(Go()).errors
    assert_sentences(failure.error)
    assert session[Task].all() == (Task(1),)


def test_a_session_works_on_after_a_reducer_was_interrupted():
    def interrupted(view: SliceView[Task], event: Go) -> SliceOp[Task]:
        raise KeyboardInterrupt

    session = session_with(interrupted, Task(1))
    with pytest.raises(KeyboardInterrupt):
        session.dispatch(Go())
    session[Task].append(Task(2))
    assert session[Task].all() == (Task(1), Task(2))


# --- reducers are pure


WRITES: dict[str, Callable[[Session], object]] = {
    "session.dispatch": lambda session: session.dispatch(Other()),
    "the same event again": lambda session: session.dispatch(Go()),
    "dispatcher.dispatch": lambda session: session.dispatcher.dispatch(Other()),
    "reduce": lambda session: session.reduce(Other()),
    "append": lambda session: session[Other].append(Other()),
    "append to its own slice": lambda session: session[Task].append(Task(9)),
    "seed": lambda session: session[Other].seed(Other()),
    "clear": lambda session: session[Task].clear(),
    "register": lambda session: session[Other].register(Task, lambda view, event: None),
    "restore": lambda session: session.restore(Session().snapshot()),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_reducer_that_dispatches_or_writes_is_refused(write: Callable[[Session], object]) -> None:
    session = Session()

    def impure(view: SliceView[Task], event: Go) -> SliceOp[Task]:
        write(session)
        return Append(Task(2))

    session[Task].register(Go, impure)
    session[Other].register(Other, append_all)
    session[Task].seed([Task(1)])
    result = session.dispatch(Go())
    (failure,) = result.errors
    assert isinstance(failure.error, SessionError)
    assert_sentences(failure.error)
    assert session[Task].all() == (Task(1),)
    assert session[Other].all() == ()
    # Nothing is stuck afterwards.
    session[Other].append(Other(1))
    assert session.dispatch(Other(2)).ok
    assert session[Other].all() == (Other(1), Other(2))


def test_a_reducer_that_swallows_the_refusal_has_still_written_nothing():
    session = Session()

    def sly(view: SliceView[Task], event: Go) -> SliceOp[Task]:
        with pytest.raises(SessionError):
            session[Other].append(Other())
        with pytest.raises(SessionError):
            session[Other].append(Other())
        return Append(Task(1))

    session[Task].register(Go, sly)
    assert session.dispatch(Go()).ok
    assert session[Other].all() == ()
    assert session[Task].all() == (Task(1),)


@pytest.mark.parametrize("order", ["written first", "writer first"])
@pytest.mark.parametrize("way", ["append", "dispatch", "bus"])
def test_a_reducer_that_writes_to_another_session_is_refused(way: str, order: str) -> None:
    # Two sessions whose reducers write to each other from two threads would wait for each other for ever.
    bus = InProcessDispatcher()
    sessions = [Session(bus=bus), Session(bus=bus)]
    written, writer = sessions if order == "written first" else reversed(sessions)
    written[Other].register(Other, append_all)

    def impure(view: SliceView[Task], event: Go) -> SliceOp[Task]:
        match way:
            case "append":
                written[Other].append(Other())
            case "dispatch":
                written.dispatch(Other())
            case _:
                bus.dispatch(Other())
        return Append(Task(1))

    writer[Task].register(Go, impure)
    (failure,) = writer.dispatch(Go()).errors
    assert isinstance(failure.error, SessionError)
    assert written[Other].all() == ()
    assert writer[Task].all() == ()


def test_a_reducer_may_read_other_slices():
    session = Session()
    session[Other].append(Other(41))

    def reading(view: SliceView[Task], event: Go) -> SliceOp[Task]:
        assert session.snapshot().slices[Other] == (Other(41),)
        assert session[Other].where(lambda other: other.value == 41)
        latest = session[Other].latest()
        assert latest is not None
        return Append(Task(latest.value + 1))

    session[Task].register(Go, reading)
    session.dispatch(Go()).raise_if_errors()
    assert session[Task].all() == (Task(42),)
