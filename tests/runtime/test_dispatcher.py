"""Events reach everybody who asked for them; one who fails does not starve the others."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from dataclasses import dataclass

import pytest

from donewhen.runtime import DispatchError, DispatchResult, InProcessDispatcher, Session, append_all


@dataclass(frozen=True)
class Event:
    number: int = 0


class Special(Event):
    """A kind of event."""


@dataclass(frozen=True)
class Echo:
    number: int = 0


# --- handlers


def test_a_handler_gets_each_event_of_exactly_its_type():
    bus, heard = InProcessDispatcher(), []
    bus.subscribe(Event, heard.append)
    for event in (Event(1), Special(2), Echo(3), Event(4)):
        bus.dispatch(event)
    assert heard == [Event(1), Event(4)]


def test_handlers_are_called_in_the_order_they_subscribed():
    bus, heard = InProcessDispatcher(), []
    for name in "abc":
        bus.subscribe(Event, lambda event, name=name: heard.append(name))
    assert bus.dispatch(Event()).handled == 3
    assert heard == ["a", "b", "c"]


def test_subscribing_a_handler_again_changes_nothing():
    bus, heard = InProcessDispatcher(), []
    bus.subscribe(Event, heard.append)
    bus.subscribe(Event, heard.append)
    assert bus.dispatch(Event()) == DispatchResult(1)
    assert len(heard) == 1


def test_one_handler_may_listen_to_several_types():
    bus, heard = InProcessDispatcher(), []
    bus.subscribe(Event, heard.append)
    bus.subscribe(Echo, heard.append)
    bus.dispatch(Event())
    bus.dispatch(Echo())
    assert heard == [Event(), Echo()]


def test_an_unsubscribed_handler_hears_nothing_more_and_the_others_do():
    bus, first, second = InProcessDispatcher(), [], []
    bus.subscribe(Event, first.append)
    bus.subscribe(Event, second.append)
    assert bus.unsubscribe(Event, first.append) is True
    assert bus.unsubscribe(Event, first.append) is False
    bus.dispatch(Event())
    assert (first, second) == ([], [Event()])


def test_unsubscribing_what_was_never_subscribed_is_no_error():
    assert InProcessDispatcher().unsubscribe(Event, print) is False


def test_an_event_that_nobody_takes_is_not_ok_but_no_error():
    result = InProcessDispatcher().dispatch(Event())
    assert (result.handled, result.errors, result.ok) == (0, (), False)
    result.raise_if_errors()


def test_a_handler_that_raises_is_reported_and_the_others_are_served():
    bus, heard = InProcessDispatcher(), []

    def broken(event: Event) -> None:
        raise ValueError("bad event")

    bus.subscribe(Event, heard.append)
    bus.subscribe(Event, broken)
    bus.subscribe(Event, lambda event: heard.append("last"))
    result = bus.dispatch(Event())
    assert heard == [Event(), "last"]
    assert (result.handled, result.ok) == (2, False)
    (failure,) = result.errors
    assert "broken" in failure.handler
    assert str(failure).endswith("broken: ValueError: bad event")


def test_an_interrupt_in_a_handler_is_not_swallowed():
    bus = InProcessDispatcher()

    def interrupted(event: Event) -> None:
        raise KeyboardInterrupt

    bus.subscribe(Event, interrupted)
    with pytest.raises(KeyboardInterrupt):
        bus.dispatch(Event())


def test_a_handler_without_a_name_is_reported_by_its_type():
    bus = InProcessDispatcher()
    bus.subscribe(Event, functools.partial(int, "x"))
    (failure,) = bus.dispatch(Event()).errors
    assert failure.handler == "partial"


def test_a_handler_may_subscribe_another_for_the_next_event():
    bus, heard = InProcessDispatcher(), []
    bus.subscribe(Event, lambda event: bus.subscribe(Event, heard.append))
    bus.dispatch(Event(1))
    assert heard == []
    bus.dispatch(Event(2))
    assert heard == [Event(2)]


def test_a_handler_may_dispatch_further_events():
    bus = InProcessDispatcher()
    session = Session(bus=bus)
    session[Echo].register(Echo, append_all)
    bus.subscribe(Event, lambda event: session.dispatch(Echo(event.number)).raise_if_errors())
    session.dispatch(Event(5)).raise_if_errors()
    assert session[Echo].all() == (Echo(5),)


def test_handlers_see_the_state_after_the_reducers():
    session = Session()
    session[Event].register(Event, append_all)
    seen: list[tuple[Event, ...]] = []
    session.dispatcher.subscribe(Event, lambda event: seen.append(session[Event].all()))  # type: ignore[attr-defined]
    session.dispatch(Event(1))
    session.dispatcher.dispatch(Event(2))
    assert seen == [(Event(1),), (Event(1), Event(2))]


def test_a_handler_does_not_keep_other_threads_out_of_the_session():
    bus = InProcessDispatcher()
    session = Session(bus=bus)
    session[Event].register(Event, append_all)
    finished: list[bool] = []

    def handler(event: Event) -> None:
        other = threading.Thread(target=session[Echo].append, args=(Echo(),), daemon=True)
        other.start()
        other.join(100)
        finished.append(not other.is_alive())

    bus.subscribe(Event, handler)
    bus.dispatch(Event())
    session.dispatch(Event())
    assert finished == [True, True]


# --- results


def test_results_add_up():
    one, two = DispatchError("a", ValueError()), DispatchError("b", KeyError())
    assert DispatchResult(1, (one,)) + DispatchResult(2, (two,)) == DispatchResult(3, (one, two))
    assert (DispatchResult().ok, DispatchResult(1).ok) == (False, True)
    assert DispatchResult(5, (one,)).ok is False


def test_the_errors_of_a_dispatch_are_raised_as_one_group():
    one, two = ValueError(), KeyError()
    with pytest.raises(ExceptionGroup) as caught:
        DispatchResult(0, (DispatchError("a", one), DispatchError("b", two))).raise_if_errors()
    assert caught.value.exceptions == (one, two)


# --- sessions


def test_a_dispatch_on_the_bus_reaches_every_session_and_handler():
    bus, heard = InProcessDispatcher(), []
    sessions = [Session(bus=bus), Session(dispatcher=bus)]
    for session in sessions:
        session[Event].register(Event, append_all)
    bus.subscribe(Event, heard.append)
    assert bus.dispatch(Event(1)) == DispatchResult(3)
    assert [session[Event].all() for session in sessions] == [(Event(1),), (Event(1),)]
    assert heard == [Event(1)]


def test_a_dispatch_on_a_session_reaches_that_session_and_the_handlers():
    bus, heard = InProcessDispatcher(), []
    one, other = Session(bus=bus), Session(bus=bus)
    for session in (one, other):
        session[Event].register(Event, append_all)
    bus.subscribe(Event, heard.append)
    assert one.dispatch(Event(1)) == DispatchResult(2)
    assert one[Event].all() == (Event(1),)
    assert other[Event].all() == ()
    assert heard == [Event(1)]


def test_an_announcement_reaches_the_handlers_only():
    bus, heard = InProcessDispatcher(), []
    session = Session(bus=bus)
    session[Event].register(Event, append_all)
    bus.subscribe(Event, heard.append)
    assert bus.announce(Event()) == DispatchResult(1)
    assert session[Event].all() == ()
    assert heard == [Event()]


def test_reducing_reaches_the_session_only():
    bus, heard = InProcessDispatcher(), []
    session = Session(bus=bus)
    session[Event].register(Event, append_all)
    bus.subscribe(Event, heard.append)
    assert session.reduce(Event()) == DispatchResult(1)
    assert heard == []


def test_the_errors_of_reducers_and_handlers_are_in_one_result():
    bus = InProcessDispatcher()
    sessions = [Session(bus=bus), Session(bus=bus)]
    for session in sessions:
        session[Event].register(Event, lambda view, event: [][0])
    bus.subscribe(Event, lambda event: {}["x"])
    result = bus.dispatch(Event())
    assert result.handled == 0
    assert [type(failure.error) for failure in result.errors] == [IndexError, IndexError, KeyError]


def test_attaching_a_session_again_does_not_double_its_effects():
    bus = InProcessDispatcher()
    session = Session(bus=bus)
    bus.attach(session)
    session[Event].register(Event, append_all)
    bus.dispatch(Event())
    assert session[Event].all() == (Event(),)


def test_a_session_can_listen_to_a_second_bus():
    second = InProcessDispatcher()
    session = Session()
    second.attach(session)
    session[Event].register(Event, append_all)
    second.dispatch(Event(1))
    session.dispatcher.dispatch(Event(2))
    assert session[Event].all() == (Event(1), Event(2))


def test_a_session_that_nobody_holds_is_not_kept_alive_by_its_bus():
    bus = InProcessDispatcher()
    session = Session(bus=bus)
    session[Event].register(Event, append_all)
    bus.dispatch(Event())
    reference = weakref.ref(session)
    del session
    gc.collect()
    assert reference() is None
    assert bus.dispatch(Event()) == DispatchResult(0)


def test_forgotten_sessions_cost_nothing():
    bus = InProcessDispatcher()
    for _ in range(100):
        Session(bus=bus)
    gc.collect()
    kept = Session(bus=bus)
    assert [reference() for reference in bus._sessions] == [kept]


def test_a_session_is_alive_as_long_as_one_of_its_slices_is_held():
    bus = InProcessDispatcher()
    held = Session(bus=bus)[Event]
    held.register(Event, append_all)
    gc.collect()
    bus.dispatch(Event(1))
    assert held.all() == (Event(1),)
