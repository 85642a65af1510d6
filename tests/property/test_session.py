"""Whatever is done to a session, it holds what a plain dictionary of lists would hold."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from donewhen.runtime import (
    Append,
    Clear,
    InProcessDispatcher,
    Replace,
    Session,
    SliceOp,
    SliceView,
    append_all,
    replace_latest,
    upsert_by,
)
from donewhen_kit import examples


@dataclass(frozen=True)
class One:
    value: int


@dataclass(frozen=True)
class Two:
    value: int


@dataclass(frozen=True)
class Latest:
    value: int


@dataclass(frozen=True)
class Keyed:
    value: int


@dataclass(frozen=True)
class Command:
    """An event that carries what its reducer is to do."""

    operation: str
    values: tuple[int, ...]


KINDS = (One, Two, Latest, Keyed)
kinds = st.sampled_from(KINDS)
numbers = st.integers(-5, 5)


def obey(view: SliceView[One], event: Command) -> SliceOp[One] | None:
    match event.operation:
        case "append":
            return Append(One(sum(event.values)))
        case "replace":
            return Replace(tuple(One(value) for value in event.values))
        case "clear":
            return Clear()
        case "nothing":
            return None
        case "wrong value":
            return Replace((One(0), Two(0)))  # type: ignore[arg-type]
        case _:
            raise LookupError(event.operation)


def key(keyed: Keyed) -> Hashable:
    return keyed.value % 3


class SessionMachine(RuleBasedStateMachine):
    """A session beside the plainest thing that could be right."""

    @initialize(by_bus=st.booleans())
    def start(self, by_bus: bool) -> None:
        self.bus = InProcessDispatcher()
        self.session = Session(bus=self.bus)
        self.dispatch = self.bus.dispatch if by_bus else self.session.dispatch
        self.model: dict[type, list[object]] = {kind: [] for kind in KINDS}
        self.saved: list[tuple[object, dict[type, list[object]]]] = []
        self.session[One].register(Command, obey)
        self.session[Two].register(Two, append_all)
        self.session[Latest].register(Latest, replace_latest)
        self.keep = upsert_by(key)
        self.session[Keyed].register(Keyed, self.keep)

    @rule(kind=kinds, number=numbers)
    def append(self, kind: type, number: int) -> None:
        self.session[kind].append(kind(number))
        self.model[kind].append(kind(number))

    @rule(kind=kinds, values=st.lists(numbers, max_size=4))
    def seed(self, kind: type, values: list[int]) -> None:
        self.session[kind].seed(kind(value) for value in values)
        self.model[kind] = [kind(value) for value in values]

    @rule(kind=kinds)
    def clear(self, kind: type) -> None:
        self.session[kind].clear()
        self.model[kind] = []

    @rule(kind=kinds, number=numbers)
    def clear_some(self, kind: type, number: int) -> None:
        self.session[kind].clear(lambda one: one.value > number)
        self.model[kind] = [one for one in self.model[kind] if one.value <= number]  # type: ignore[attr-defined]

    @rule(number=numbers)
    def dispatch_appended(self, number: int) -> None:
        assert self.dispatch(Two(number)).handled == 1
        self.model[Two].append(Two(number))

    @rule(number=numbers)
    def dispatch_replacing(self, number: int) -> None:
        assert self.dispatch(Latest(number)).handled == 1
        self.model[Latest] = [Latest(number)]

    @rule(number=numbers)
    def dispatch_keyed(self, number: int) -> None:
        assert self.dispatch(Keyed(number)).handled == 1
        values = self.model[Keyed]
        same = [key(value) == key(Keyed(number)) for value in values]  # type: ignore[arg-type]
        if any(same):
            self.model[Keyed] = [Keyed(number) if hit else one for one, hit in zip(values, same, strict=True)]
        else:
            values.append(Keyed(number))

    @rule(
        operation=st.sampled_from(["append", "replace", "clear", "nothing"]),
        values=st.lists(numbers, max_size=3).map(tuple),
    )
    def dispatch_command(self, operation: str, values: tuple[int, ...]) -> None:
        assert self.dispatch(Command(operation, values)).handled == 1
        match operation:
            case "append":
                self.model[One].append(One(sum(values)))
            case "replace":
                self.model[One] = [One(value) for value in values]
            case "clear":
                self.model[One] = []

    @rule(operation=st.sampled_from(["wrong value", "unknown"]))
    def dispatch_failing(self, operation: str) -> None:
        result = self.dispatch(Command(operation, ()))
        assert result.handled == 0
        assert len(result.errors) == 1

    @rule()
    def register_again(self) -> None:
        self.session[One].register(Command, obey)
        self.session[Keyed].register(Keyed, self.keep)

    @rule()
    def save(self) -> None:
        self.saved.append((self.session.snapshot(), {kind: list(values) for kind, values in self.model.items()}))

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        snapshot, model = data.draw(st.sampled_from(self.saved))
        self.session.restore(snapshot)  # type: ignore[arg-type]
        self.model = {kind: list(values) for kind, values in model.items()}

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        for kind in KINDS:
            expected = tuple(self.model[kind])
            assert self.session[kind].all() == expected
            assert self.session[kind].latest() == (expected[-1] if expected else None)
            assert len(self.session[kind]) == len(expected)
            assert self.session.snapshot().slices[kind] == expected

    @invariant()
    def keeps_its_snapshots(self) -> None:
        for snapshot, model in self.saved:
            assert dict(snapshot.slices) == {kind: tuple(values) for kind, values in model.items()}  # type: ignore[attr-defined]


SessionMachine.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
TestSessionAgainstAPlainDictionary = SessionMachine.TestCase


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(numbers, max_size=20))
def test_where_agrees_with_a_filter_over_all(values: list[int]) -> None:
    session = Session()
    session[One].seed(One(value) for value in values)
    assert session[One].where(lambda one: one.value > 0) == tuple(One(value) for value in values if value > 0)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(numbers, max_size=20))
def test_upserting_keeps_the_newest_value_of_each_key_in_the_order_the_keys_appeared(values: list[int]) -> None:
    session = Session()
    session[Keyed].register(Keyed, upsert_by(key))
    for value in values:
        session.dispatch(Keyed(value))
    newest: dict[Hashable, Keyed] = {}
    for value in values:
        newest[key(Keyed(value))] = Keyed(value)
    assert session[Keyed].all() == tuple(newest.values())
