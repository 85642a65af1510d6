"""Who approves is established in one place: a person who types a word, a key, CI, or else an agent."""

from __future__ import annotations

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.foundation.errors import UsageError
from donewhen.jobs.ledger import approval, person_check
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.person_check import approve_as_ci, approve_in_person, why_no_person


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent runs this, and there is a terminal."""
    for name in AGENT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(approval, "_ancestor_programs", list)
    monkeypatch.setattr(person_check, "is_at_terminal", lambda: True)


def refuse_to_ask(word: str) -> str:
    raise AssertionError(f"asked for {word}")


def refuse_to_note(reason: str) -> None:
    raise AssertionError(f"noted {reason}")


@pytest.mark.usefixtures("alone")
def test_a_person_who_types_the_word_approves() -> None:
    assert why_no_person() is None
    assert approve_in_person(lambda word: f" {word}\n", refuse_to_note) == Approval(person_at_terminal())


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("typed", ["", "yes", "y", "amber-amber-amber"])
def test_a_person_who_types_something_else_declines(typed: str) -> None:
    assert approve_in_person(lambda _: typed, refuse_to_note) is None


@pytest.mark.usefixtures("alone")
def test_the_word_is_another_one_each_time() -> None:
    words: set[str] = set()
    for _ in range(20):
        approve_in_person(lambda word: words.add(word) or "", refuse_to_note)
    assert len(words) > 10


@pytest.mark.usefixtures("alone")
def test_without_a_terminal_it_is_an_agent_and_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_check, "is_at_terminal", lambda: False)
    reasons: list[str] = []
    assert approve_in_person(refuse_to_ask, reasons.append) == Approval(unproved_actor())
    assert reasons == [why_no_person()] == ["nobody is at a terminal"]
    assert why_no_person(nobody="it has no terminal") == "it has no terminal"


@pytest.mark.usefixtures("alone")
def test_inside_an_agent_a_terminal_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(AGENT_VARIABLES[0], "1")
    reasons: list[str] = []
    assert approve_in_person(refuse_to_ask, reasons.append) == Approval(unproved_actor())
    assert reasons == [f"{AGENT_VARIABLES[0]} shows that an agent is running"]


@pytest.mark.usefixtures("alone")
def test_ci_approves_only_in_ci_and_not_inside_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTOR", "ada")
    assert approve_as_ci().by == ("ada", "ci")
    monkeypatch.setenv(AGENT_VARIABLES[0], "1")
    with pytest.raises(UsageError):
        approve_as_ci()


@pytest.mark.usefixtures("alone")
def test_outside_of_ci_nothing_is_approved_as_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_check, "is_ci", lambda: False)
    with pytest.raises(UsageError):
        approve_as_ci()
