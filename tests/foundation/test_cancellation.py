"""Work can ask whether somebody still waits for it."""

from __future__ import annotations

import contextvars
import threading

from donewhen.foundation.cancellation import cancellable, cancelled


def in_own_context(function, *arguments):
    return contextvars.copy_context().run(function, *arguments)


def test_work_outside_a_cancellable_context_is_never_cancelled():
    assert in_own_context(cancelled) is False


def test_setting_the_event_cancels_what_runs_in_its_context():
    surroundings = contextvars.copy_context()
    event = surroundings.run(cancellable)
    assert surroundings.run(cancelled) is False
    event.set()
    assert surroundings.run(cancelled) is True


def test_cancelling_stays_inside_its_context():
    event = contextvars.copy_context().run(cancellable)
    event.set()
    assert cancelled() is False
    assert in_own_context(cancelled) is False


def test_a_neighbour_is_not_cancelled():
    one, other = contextvars.copy_context(), contextvars.copy_context()
    one.run(cancellable).set()
    assert other.run(cancellable).is_set() is False
    assert other.run(cancelled) is False


def test_cancelling_the_outer_work_cancels_the_inner():
    outer = contextvars.copy_context()
    event = outer.run(cancellable)
    inner = outer.run(contextvars.copy_context)
    inner_event = inner.run(cancellable)
    assert inner.run(cancelled) is False
    event.set()
    assert inner_event.is_set() is True
    assert inner.run(cancelled) is True


def test_cancelling_the_outermost_work_reaches_through_several_levels():
    context = contextvars.copy_context()
    event = context.run(cancellable)
    for _ in range(5):
        context = context.run(contextvars.copy_context)
        context.run(cancellable)
    event.set()
    assert context.run(cancelled) is True


def test_cancelling_the_inner_work_leaves_the_outer_alone():
    outer = contextvars.copy_context()
    outer_event = outer.run(cancellable)
    inner = outer.run(contextvars.copy_context)
    inner.run(cancellable).set()
    assert inner.run(cancelled) is True
    assert outer_event.is_set() is False
    assert outer.run(cancelled) is False


def test_a_thread_that_runs_in_the_context_sees_the_cancellation():
    surroundings = contextvars.copy_context()
    event = surroundings.run(cancellable)
    seen: list[bool] = []
    started, go_on = threading.Event(), threading.Event()

    def work() -> None:
        seen.append(cancelled())
        started.set()
        go_on.wait(30)
        seen.append(cancelled())

    thread = threading.Thread(target=surroundings.run, args=(work,))
    thread.start()
    started.wait(30)
    event.set()
    go_on.set()
    thread.join(30)
    assert seen == [False, True]
