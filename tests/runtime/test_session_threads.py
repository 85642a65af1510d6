"""Whichever threads dispatch, no update is lost and nobody sees half of one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from donewhen.runtime import (
    Append,
    DispatchResult,
    InProcessDispatcher,
    Replace,
    Session,
    SliceView,
    append_all,
    upsert_by,
)

THREADS = 4
EACH = 25_000


@pytest.fixture(autouse=True)
def busy_threads() -> Iterator[None]:
    """Let threads interrupt each other far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@dataclass(frozen=True)
class Add:
    amount: int


@dataclass(frozen=True)
class Total:
    value: int


@dataclass(frozen=True)
class Count:
    value: int


def add(view: SliceView[Total], event: Add) -> Replace[Total]:
    """Reads, then writes: what an unlocked dispatch loses."""
    before = view.latest() or Total(0)
    return Replace((Total(before.value + event.amount),))


def count(view: SliceView[Count], event: Add) -> Replace[Count]:
    before = view.latest() or Count(0)
    return Replace((Count(before.value + 1),))


def in_threads(*works: Callable[[], None]) -> None:
    """Run all at once; what one of them raises is raised here."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            barrier.wait(60)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("way", ["session.dispatch", "dispatcher.dispatch"])
def test_four_threads_and_a_hundred_thousand_dispatches_lose_no_update(way: str) -> None:
    bus = InProcessDispatcher()
    session = Session(dispatcher=bus)
    session[Total].register(Add, add)
    dispatch: Callable[[object], DispatchResult] = session.dispatch if way == "session.dispatch" else bus.dispatch
    handled = [0] * THREADS

    def work(number: int) -> None:
        event = Add(1)
        for _ in range(EACH):
            handled[number] += dispatch(event).handled

    in_threads(*(lambda number=number: work(number) for number in range(THREADS)))
    assert session[Total].all() == (Total(THREADS * EACH),)
    assert sum(handled) == THREADS * EACH


def test_both_ways_of_dispatching_share_one_lock() -> None:
    bus = InProcessDispatcher()
    session = Session(bus=bus)
    session[Total].register(Add, add)

    def through(dispatch: Callable[[object], DispatchResult]) -> Callable[[], None]:
        def work() -> None:
            for _ in range(5000):
                dispatch(Add(1))

        return work

    in_threads(through(session.dispatch), through(bus.dispatch), through(session.reduce))
    assert session[Total].latest() == Total(15_000)


def test_appends_from_several_threads_are_all_kept_and_each_threads_stay_in_order() -> None:
    session = Session()
    session[Add].register(Add, append_all)

    def directly(number: int) -> None:
        for position in range(3000):
            session[tuple].append((number, position))

    def by_event(number: int) -> None:
        for position in range(3000):
            session.dispatch(Add(number * 10_000 + position))

    in_threads(lambda: directly(0), lambda: directly(1), lambda: by_event(0), lambda: by_event(1))
    pairs = session[tuple].all()
    assert len(pairs) == 6000
    for number in (0, 1):
        assert [position for thread, position in pairs if thread == number] == list(range(3000))
    amounts = [event.amount for event in session[Add].all()]
    assert sorted(amounts) == [*range(3000), *range(10_000, 13_000)]


def test_an_upsert_under_threads_keeps_one_value_for_each_key() -> None:
    session = Session()
    session[Total].register(Total, upsert_by(lambda total: total.value % 7))

    def work() -> None:
        for number in range(1500):
            session.dispatch(Total(number))

    in_threads(*[work] * THREADS)
    assert sorted(total.value % 7 for total in session[Total].all()) == list(range(7))


def test_the_slices_that_one_event_changes_are_never_seen_apart() -> None:
    session = Session()
    session[Total].register(Add, add)
    session[Count].register(Add, count)
    finished = threading.Event()
    apart: list[object] = []
    looks = 0

    def dispatching() -> None:
        for _ in range(4000):
            session.dispatch(Add(1))

    def looking() -> None:
        nonlocal looks
        while not finished.is_set():
            slices = session.snapshot().slices
            totals, counts = slices.get(Total, ()), slices.get(Count, ())
            looks += 1
            if [total.value for total in totals] != [one.value for one in counts]:
                apart.append((totals, counts))

    def all_dispatching() -> None:
        try:
            in_threads(dispatching, dispatching)
        finally:
            finished.set()

    in_threads(all_dispatching, looking)
    assert apart == []
    assert looks > 0
    assert session[Total].latest() == Total(8000)


def test_what_is_read_while_others_write_is_always_whole() -> None:
    session = Session()
    session[Count].register(Add, lambda view, event: Append(Count(len(view))))
    finished = threading.Event()

    def writing() -> None:
        try:
            for _ in range(4000):
                session.dispatch(Add(1))
        finally:
            finished.set()

    def reading() -> None:
        while not finished.is_set():
            values = session[Count].all()
            assert [value.value for value in values] == list(range(len(values)))
            latest = session[Count].latest()
            assert latest is None or latest.value >= len(values) - 1

    in_threads(writing, reading)
    assert len(session[Count]) == 4000


def test_clearing_by_predicate_loses_nothing_that_is_appended_meanwhile() -> None:
    session = Session()

    def appending(number: int) -> None:
        for position in range(2000):
            session[tuple].append((number, position))

    def clearing() -> None:
        for _ in range(300):
            session[tuple].clear(lambda pair: False)

    in_threads(lambda: appending(0), lambda: appending(1), clearing)
    assert len(session[tuple]) == 4000


def test_a_reducer_registered_by_several_threads_has_its_effect_once() -> None:
    session = Session()

    def work() -> None:
        for _ in range(200):
            session[Total].register(Add, add)

    in_threads(*[work] * THREADS)
    session.dispatch(Add(1))
    assert session[Total].all() == (Total(1),)


def test_sessions_attached_by_several_threads_are_all_served() -> None:
    sys.setswitchinterval(1e-6)
    bus = InProcessDispatcher()
    sessions: list[Session] = []

    def work() -> None:
        for _ in range(150):
            session = Session(bus=bus)
            session[Total].register(Add, add)
            sessions.append(session)

    in_threads(*[work] * THREADS)
    assert bus.dispatch(Add(1)).handled == 600
    assert all(session[Total].latest() == Total(1) for session in sessions)


def test_a_handler_subscribed_while_another_thread_subscribes_is_not_lost() -> None:
    bus = InProcessDispatcher()
    calls: list[str] = []
    others: list[threading.Thread] = []

    class Slow:
        """Compares itself so slowly that somebody else can come in between."""

        def __eq__(self, other: object) -> bool:
            if not others:
                others.append(threading.Thread(target=bus.subscribe, args=(Add, lambda event: calls.append("other"))))
                others[0].start()
                others[0].join(0.3)  # it can't finish if it has to wait for us, and it must
            return self is other

        __hash__ = None  # type: ignore[assignment]

        def __call__(self, event: Add) -> None:
            calls.append("slow")

    bus.subscribe(Add, lambda event: calls.append("first"))
    bus.subscribe(Add, Slow())
    others[0].join(60)
    assert bus.dispatch(Add(1)).handled == 3
    assert sorted(calls) == ["first", "other", "slow"]


def test_a_dispatch_from_another_thread_waits_for_a_running_reducer_and_is_not_refused() -> None:
    session = Session()
    inside, go_on = threading.Event(), threading.Event()
    results: list[DispatchResult] = []

    def slow(view: SliceView[Total], event: Add) -> Replace[Total]:
        if not inside.is_set():
            inside.set()
            go_on.wait(60)
        return add(view, event)

    session[Total].register(Add, slow)
    first = threading.Thread(target=lambda: results.append(session.dispatch(Add(1))), daemon=True)
    first.start()
    assert inside.wait(60)
    second = threading.Thread(target=lambda: results.append(session.dispatch(Add(10))), daemon=True)
    second.start()
    second.join(0.1)
    assert second.is_alive()
    go_on.set()
    first.join(60)
    second.join(60)
    assert [result.ok for result in results] == [True, True]
    assert session[Total].latest() == Total(11)
