"""A session holds typed slices: reading, writing, registering, going back."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from donewhen.runtime import (
    Append,
    DispatchResult,
    InProcessDispatcher,
    Session,
    SessionError,
    Slice,
    SliceView,
    Snapshot,
    append_all,
    replace_latest,
    slice_store,
)
from donewhen.runtime import session as session_module
from sentences import assert_sentences


@dataclass(frozen=True)
class Note:
    text: str


@dataclass(frozen=True)
class Number:
    value: int


class Shouted(Note):
    """A kind of note."""


def slices_of(session: Session) -> dict[type, tuple[object, ...]]:
    return dict(session.snapshot().slices)


# --- the dispatcher


def test_a_session_makes_its_own_dispatcher():
    one, other = Session(), Session()
    assert isinstance(one.dispatcher, InProcessDispatcher)
    assert one.dispatcher is not other.dispatcher


@pytest.mark.parametrize("names", [("bus",), ("dispatcher",), ("bus", "dispatcher")])
def test_the_dispatcher_may_be_given_by_either_name_or_by_both(names: tuple[str, ...]) -> None:
    given = InProcessDispatcher()
    session = Session(**dict.fromkeys(names, given))
    assert session.dispatcher is given
    session[Note].register(Note, append_all)
    assert given.dispatch(Note("a")).handled == 1
    assert session[Note].latest() == Note("a")


def test_two_different_dispatchers_for_one_session_are_refused():
    with pytest.raises(SessionError) as caught:
        Session(bus=InProcessDispatcher(), dispatcher=InProcessDispatcher())
    assert_sentences(caught.value)


@pytest.mark.parametrize("name", ["bus", "dispatcher"])
def test_a_dispatcher_that_counts_as_false_is_used_all_the_same(name: str) -> None:
    class Empty(InProcessDispatcher):
        def __len__(self) -> int:
            return 0

    given = Empty()
    assert Session(**{name: given}).dispatcher is given


def test_sessions_have_different_ids():
    assert len({Session().session_id for _ in range(20)}) == 20


# --- reading and writing


def test_a_slice_that_nobody_wrote_to_is_empty_and_stays_unknown():
    session = Session()
    assert session[Note].latest() is None
    assert session[Note].all() == ()
    assert session[Note].where(lambda note: True) == ()
    assert len(session[Note]) == 0
    assert list(session[Note]) == []
    assert Note not in session
    assert slices_of(session) == {}


def test_values_come_back_oldest_first():
    session = Session()
    for text in "abc":
        session[Note].append(Note(text))
    assert session[Note].all() == (Note("a"), Note("b"), Note("c"))
    assert session[Note].latest() == Note("c")
    assert list(session[Note]) == list(session[Note].all())
    assert len(session[Note]) == 3
    assert repr(session[Note]) == "<Slice Note: 3 value(s)>"


def test_equal_values_are_all_kept():
    session = Session()
    session[Note].append(Note("a"))
    session[Note].append(Note("a"))
    assert len(session[Note]) == 2


def test_slices_do_not_mix():
    session = Session()
    session[Note].append(Note("a"))
    session[Number].append(Number(1))
    session[Note].clear()
    assert session[Number].all() == (Number(1),)


def test_two_handles_of_one_slice_see_the_same_values():
    session = Session()
    handle: Slice[Note] = session[Note]
    session[Note].append(Note("a"))
    assert handle.all() == (Note("a"),)


def test_sessions_do_not_mix_even_on_one_dispatcher():
    bus = InProcessDispatcher()
    one, other = Session(bus=bus), Session(bus=bus)
    one[Note].append(Note("a"))
    assert other[Note].all() == ()


def test_where_gives_the_values_for_which_it_holds_oldest_first():
    session = Session()
    session[Number].seed(Number(value) for value in (3, 1, 4, 1, 5))
    assert session[Number].where(lambda number: number.value > 2) == (Number(3), Number(4), Number(5))


def test_what_was_read_stays_as_it_was():
    session = Session()
    session[Note].append(Note("a"))
    before = session[Note].all()
    iterator = iter(session[Note])
    session[Note].append(Note("b"))
    session[Note].clear()
    assert before == (Note("a"),)
    assert list(iterator) == [Note("a")]


def test_seeding_makes_these_the_whole_slice():
    session = Session()
    session[Note].append(Note("old"))
    session[Note].seed([Note("a"), Note("b")])
    assert session[Note].all() == (Note("a"), Note("b"))
    session[Note].seed(Note("c"))
    assert session[Note].all() == (Note("c"),)
    session[Note].seed(Note(text) for text in "de")
    assert session[Note].all() == (Note("d"), Note("e"))
    session[Note].seed([])
    assert session[Note].all() == ()
    assert Note in session


def test_one_value_that_could_be_iterated_is_seeded_as_one_value():
    session = Session()
    session[str].seed("abc")
    session[tuple].seed((1, 2))
    assert session[str].all() == ("abc",)
    assert session[tuple].all() == ((1, 2),)


def test_clearing_empties_the_slice_or_removes_what_is_named():
    session = Session()
    session[Number].seed([Number(1), Number(2), Number(3)])
    session[Number].clear(lambda number: number.value == 2)
    assert session[Number].all() == (Number(1), Number(3))
    assert session[Number].latest() == Number(3)
    session[Number].clear()
    assert session[Number].all() == ()
    assert session[Number].latest() is None


def test_a_value_of_a_subclass_is_kept_in_the_slice_it_was_given_to():
    session = Session()
    session[Note].append(Shouted("A"))
    assert session[Note].all() == (Shouted("A"),)
    assert session[Shouted].all() == ()


@pytest.mark.parametrize(
    "write",
    [
        lambda session: session[Note].append(Number(1)),
        lambda session: session[Note].seed([Note("b"), Number(1)]),
        lambda session: session[Note].seed(["b"]),
    ],
    ids=["append", "seed with one wrong", "seed"],
)
def test_a_value_of_another_type_is_refused_and_the_slice_stays(write: Callable[[Session], None]) -> None:
    session = Session()
    session[Note].append(Note("a"))
    with pytest.raises(TypeError) as caught:
        write(session)
    assert_sentences(caught.value)
    assert session[Note].all() == (Note("a"),)


def test_an_iterable_that_breaks_while_seeding_leaves_the_slice_unchanged():
    session = Session()
    session[Note].append(Note("a"))

    def broken():
        yield Note("b")
        raise LookupError

    with pytest.raises(LookupError):
        session[Note].seed(broken())
    assert session[Note].all() == (Note("a"),)


def test_a_predicate_that_breaks_while_clearing_leaves_the_slice_unchanged_and_usable():
    session = Session()
    session[Number].seed([Number(1), Number(0)])
    with pytest.raises(ZeroDivisionError):
        session[Number].clear(lambda number: 1 / number.value > 0)
    assert session[Number].all() == (Number(1), Number(0))
    session[Number].append(Number(2))
    assert len(session[Number]) == 3


def test_a_value_written_by_a_predicate_while_clearing_is_not_lost_silently():
    session = Session()
    session[Number].seed([Number(1)])

    def writing(number: Number) -> bool:
        session[Number].append(Number(9))
        return True

    try:
        session[Number].clear(writing)
    except SessionError:
        assert session[Number].all() == (Number(1),)
    else:
        assert Number(9) in session[Number].all()


@pytest.mark.parametrize("key", ["Note", Note("a"), None, list[int], 3])
def test_a_session_is_indexed_by_a_class(key: object) -> None:
    with pytest.raises(TypeError) as caught:
        Session()[key]  # type: ignore[index]
    assert_sentences(caught.value)


def test_a_session_knows_a_slice_once_it_was_written_to_or_registered():
    session = Session()
    assert Note not in session
    session[Note].append(Note("a"))
    assert Note in session
    assert Number not in session
    session[Number].register(Note, lambda view, event: None)
    assert Number in session
    assert "Note" not in session


def test_asking_whether_a_slice_is_known_is_safe_while_others_register():
    # The moment between two looks into the session, as another thread would use it.
    session = Session()
    session[Note].register(Note, append_all)
    kinds = iter([type(f"Event{number}", (), {}) for number in range(100)])

    class Probe:
        def __hash__(self) -> int:
            session[Number].register(next(kinds), lambda view, event: None)
            return 1

        def __eq__(self, other: object) -> bool:
            return False

    assert Probe() not in session


# --- what it costs


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LENGTH = 100_000
COPY = LENGTH * 8
"""Bytes; what one copy of the slice takes at least, as a list or a tuple."""


@pytest.mark.parametrize("way", ["append", "session.dispatch", "dispatcher.dispatch"])
def test_appending_never_copies_the_slice(way: str) -> None:
    session = Session()
    session[Number].register(Number, append_all)
    session[Number].seed([Number(1)] * LENGTH)
    one = Number(2)
    # A list that has no room left grows by an eighth; that happens now, and not while we measure.
    session[Number].append(one)
    write: Callable[[Number], object] = {
        "append": session[Number].append,
        "session.dispatch": session.dispatch,
        "dispatcher.dispatch": session.dispatcher.dispatch,
    }[way]
    assert peak_of(lambda: [write(one) for _ in range(50)] and None) < COPY / 4
    assert len(session[Number]) == LENGTH + 51


def test_reading_all_values_copies_only_after_a_change():
    session = Session()
    session[Number].seed(Number(value) for value in range(10))
    session[Number].append(Number(10))
    first = session[Number].all()
    assert session[Number].all() is first
    assert session.snapshot().slices[Number] is first
    session[Number].append(Number(11))
    second = session[Number].all()
    assert second is not first
    assert len(second) == 12
    assert session[Number].all() is second


def test_reading_the_latest_value_or_the_length_copies_nothing():
    session = Session()
    session[Number].seed([Number(1)] * LENGTH)
    session[Number].append(Number(2))
    assert peak_of(session[Number].latest) < COPY / 4
    assert peak_of(lambda: len(session[Number])) < COPY / 4


def test_a_reducer_that_looks_at_the_latest_value_or_the_length_copies_nothing():
    session = Session()
    session[Number].register(Note, lambda view, event: Append(Number(len(view) + (view.latest() or Number(0)).value)))
    session[Number].seed([Number(1)] * LENGTH)
    session[Number].append(Number(2))
    assert peak_of(lambda: session.dispatch(Note("a"))) < COPY / 4
    assert session[Number].latest() == Number(LENGTH + 1 + 2)


def test_appending_builds_no_list_or_tuple_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    session[Number].register(Number, append_all)
    session[Number].seed([Number(1)] * 500)
    built: list[int] = []

    def counting(kind: type) -> Callable[..., object]:
        def build(*values: object) -> object:
            made = kind(*values)
            built.append(len(made))
            return made

        return build

    for module, kind in itertools.product((session_module, slice_store), (list, tuple)):
        monkeypatch.setattr(module, kind.__name__, counting(kind), raising=False)
    for _ in range(20):
        session.dispatch(Number(2))
        session[Number].append(Number(3))
    assert max(built, default=0) <= 1  # a dispatch lists its one reducer
    session[Number].all()
    session[Number].all()
    assert [length for length in built if length > 1] == [540]


# --- registering


def test_a_registered_reducer_takes_events_of_exactly_its_type():
    session = Session()
    session[Note].register(Note, append_all)
    assert session.dispatch(Note("a")) == DispatchResult(1)
    assert session.dispatch(Number(1)) == DispatchResult(0)
    assert session[Note].all() == (Note("a"),)


def test_a_value_of_a_subclass_belongs_to_the_known_slice_of_its_base_class():
    session = Session()
    session[Note].register(Note, replace_latest)
    session[Note].append(Note("a"))
    assert session.dispatch(Shouted("B")) == DispatchResult(1)
    assert session[Note].all() == (Shouted("B"),)
    assert Shouted not in session


def test_a_value_of_a_known_slice_is_kept_without_a_reducer_for_it():
    session = Session()
    session[Note].seed(Note("a"))
    assert session.dispatch(Note("b")).ok
    session[Number].register(Note, lambda view, event: None)
    assert session.dispatch(Number(1)).ok
    assert (session[Note].all(), session[Number].all()) == ((Note("a"), Note("b")), (Number(1),))


def test_a_value_that_nobody_takes_is_kept_but_not_ok_and_its_slice_stays_unknown():
    session = Session()
    for _ in range(2):
        result = session.dispatch(Note("a"))
        assert (result.handled, result.errors, result.ok) == (0, (), False)
    assert Note not in session
    assert session[Note].all() == (Note("a"), Note("a"))
    session[Note].register(Note, replace_latest)
    assert Note in session
    assert session.dispatch(Note("b")).ok
    assert session[Note].all() == (Note("b"),)


def test_a_broadcast_that_nobody_takes_is_not_kept():
    session = Session()
    assert session.dispatcher.dispatch(Note("a")).ok is False
    assert session[Note].all() == ()


def test_a_reducer_with_other_parameters_is_refused_when_it_is_registered():
    session = Session()

    def with_context(view: SliceView[Note], event: Note, *, context: object) -> Append[Note]:
        return Append(event)

    for reducer in (with_context, lambda event: None):
        with pytest.raises(SessionError) as caught:
            session[Note].register(Note, reducer)  # type: ignore[arg-type]
        assert_sentences(caught.value)
    assert Note not in session


def test_registering_the_same_reducer_twice_has_its_effect_once():
    session = Session()
    session[Note].register(Note, append_all)
    session[Note].register(Note, append_all)
    assert session.dispatch(Note("a")).handled == 1
    assert session[Note].all() == (Note("a"),)


def test_a_bound_method_registered_twice_is_the_same_reducer():
    class Keeper:
        def keep(self, view: SliceView[Note], event: Note) -> Append[Note]:
            return Append(event)

    keeper, session = Keeper(), Session()
    session[Note].register(Note, keeper.keep)
    session[Note].register(Note, keeper.keep)
    session.dispatch(Note("a"))
    assert len(session[Note]) == 1
    with pytest.raises(SessionError):
        session[Note].register(Note, Keeper().keep)


def test_registering_a_different_reducer_is_an_error_and_the_first_one_stays():
    session = Session()
    session[Note].register(Note, append_all)
    with pytest.raises(SessionError) as caught:
        session[Note].register(Note, replace_latest)
    assert_sentences(caught.value)
    session.dispatch(Note("a"))
    session.dispatch(Note("b"))
    assert len(session[Note]) == 2


def test_one_slice_takes_several_event_types_and_one_event_feeds_several_slices():
    session = Session()
    session[Note].register(Note, append_all)
    session[Note].register(Number, lambda view, event: Append(Note(str(event.value))))
    session[Number].register(Note, lambda view, event: Append(Number(len(event.text))))
    assert session.dispatch(Note("abc")).handled == 2
    assert session.dispatch(Number(7)).handled == 2  # by the reducer, and as a value of its own slice
    assert session[Note].all() == (Note("abc"), Note("7"))
    assert session[Number].all() == (Number(3), Number(7))


def test_registering_keeps_the_values_that_are_there():
    session = Session()
    session[Note].append(Note("a"))
    session[Note].register(Note, append_all)
    assert session[Note].all() == (Note("a"),)


# --- snapshots


def test_restoring_goes_back_to_every_slice_of_the_snapshot_and_empties_the_others():
    session = Session()
    session[Note].seed([Note("a"), Note("b")])
    snapshot = session.snapshot()
    session[Note].append(Note("c"))
    session[Number].append(Number(1))
    session.restore(snapshot)
    assert session[Note].all() == (Note("a"), Note("b"))
    assert session[Note].latest() == Note("b")
    assert session[Number].all() == ()


def test_a_snapshot_does_not_follow_the_session():
    session = Session()
    session[Note].append(Note("a"))
    snapshot = session.snapshot()
    session[Note].append(Note("b"))
    session[Number].append(Number(1))
    assert dict(snapshot.slices) == {Note: (Note("a"),)}


def test_one_snapshot_can_be_restored_again_and_again():
    session = Session()
    session[Note].append(Note("a"))
    snapshot = session.snapshot()
    for text in "bc":
        session[Note].append(Note(text))
        session.restore(snapshot)
        assert session[Note].all() == (Note("a"),)
    session[Note].append(Note("d"))
    assert snapshot.slices[Note] == (Note("a"),)


def test_a_cleared_slice_comes_back():
    session = Session()
    session[Note].append(Note("a"))
    snapshot = session.snapshot()
    session[Note].clear()
    session.restore(snapshot)
    assert session[Note].all() == (Note("a"),)


def test_reducers_stay_registered_when_a_session_goes_back():
    session = Session()
    empty = session.snapshot()
    session[Note].register(Note, append_all)
    session.dispatch(Note("a"))
    session.restore(empty)
    assert session[Note].all() == ()
    assert session.dispatch(Note("b")).handled == 1
    assert session[Note].all() == (Note("b"),)


def test_a_snapshot_can_be_restored_into_another_session():
    session, other = Session(), Session()
    session[Note].append(Note("a"))
    other[Number].append(Number(1))
    other.restore(session.snapshot())
    assert other[Note].all() == (Note("a"),)
    assert other[Number].all() == ()
    other[Note].append(Note("b"))
    assert session[Note].all() == (Note("a"),)


def test_a_snapshot_can_not_be_changed():
    session = Session()
    session[Note].append(Note("a"))
    snapshot = session.snapshot()
    with pytest.raises(TypeError):
        snapshot.slices[Note] = ()  # type: ignore[index]
    with pytest.raises(AttributeError):
        snapshot.slices = {}  # type: ignore[misc]
    assert snapshot == Snapshot({Note: (Note("a"),)})
