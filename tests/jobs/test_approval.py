"""Who says so: a person, a key, a CI run that was allowed to, and agents, whose word is only recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger import approval
from donewhen.jobs.ledger.approval import (
    Approval,
    Policy,
    approval_subject,
    detected_agent,
    is_approval,
    is_at_terminal,
    is_ci,
    person_at_terminal,
    signature,
    unproved_actor,
)
from donewhen.jobs.ledger.entries import Actor, ApproverClass, Entry
from donewhen.jobs.ledger.terms_content import PROJECT_TERMS, ProjectTerms
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace

ADA = Approval(Actor("ada", "person"))
BOT = Approval(Actor("bot", "agent"))
CI = Approval(Actor("ci", "ci"))
ALLOWED = "[approval]\nci = true\n"
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / ".git").mkdir()
    made = create_project(tmp_path, "Demo")
    add_job(made, "Parser", criteria=["The log is parsed."])
    return made


def agree_to(workspace: Workspace, who: Approval, *, job: bool = True) -> list[str]:
    """Agree to the project (and to the job), and give back where the agreements stand then."""
    jobs = [workspace.job_at(next(workspace.places()).path)]
    for proposal in agreement_proposals(workspace, jobs if job else []):
        agree(workspace, proposal, who)
    return [proposal.agreement.state for proposal in agreement_proposals(workspace, jobs)]


def entry(kind: ApproverClass, data: Mapping[str, Any] | None = None) -> Entry:
    return Entry(1, None, "agreed", "2026-02-14T00:00:00Z", Actor("x", kind), data or {}, "h")


@pytest.mark.parametrize("allowed", [False, True], ids=["strict", "open"])
@pytest.mark.parametrize(("kind", "counts"), [("person", True), ("agent", False), ("ci", None), ("key", False)])
def test_a_person_counts_an_agent_never_and_ci_where_it_may(
    kind: ApproverClass, counts: bool | None, allowed: bool
) -> None:
    policy = Policy(ci=allowed, keys=frozenset({"ed25519:other"} if allowed else ()))
    expected = allowed if counts is None else counts
    assert Approval(Actor("x", kind), "ed25519:mine").counts(policy) is expected
    assert is_approval(entry(kind), "X", policy) is expected


def test_somebody_of_a_class_that_nobody_knows_does_not_count() -> None:
    policy = Policy(ci=True, keys=frozenset({"ed25519:mine"}))
    unknown: Any = "robot"
    assert not Approval(Actor("x", unknown), "ed25519:mine").counts(policy)
    assert not is_approval(entry(unknown), "X", policy)


def test_a_key_counts_once_it_is_trusted() -> None:
    mine = Approval(Actor("x", "key"), "ed25519:mine")
    assert mine.counts(Policy(keys=frozenset({"ed25519:mine"})))
    assert not mine.counts(Policy(ci=True))
    assert not Approval(Actor("x", "key")).counts(Policy(keys=frozenset({"ed25519:mine"})))


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        (None, Policy()),
        ({}, Policy()),
        ({"approval.ci": True}, Policy(ci=True)),
        ({"approval.ci": False}, Policy()),
        ({"approval.keys": ["a", "b", "a"]}, Policy(keys=frozenset("ab"))),
        ({"elsewhere.ci": True}, Policy()),
    ],
    ids=["none", "no settings", "ci", "no ci", "keys", "elsewhere"],
)
def test_the_policy_is_what_the_sealed_terms_say_and_nothing_else(
    settings: Mapping[str, Any] | None, policy: Policy
) -> None:
    terms = None if settings is None else of_project(settings)
    assert Policy.of(terms) == policy


@pytest.mark.parametrize("settings", [{"approval.ci": "true"}, {"approval.ci": 1}, {"approval.keys": "ab"}])
def test_a_policy_of_the_wrong_type_can_not_be_sealed(settings: Mapping[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        of_project(settings)


def of_project(settings: Mapping[str, Any]) -> ProjectTerms:
    terms = {"project": "PJ-1", "criteria": [], "settings": settings, "hooks": [], "baselines": {}}
    return msgspec.convert({**terms, "schema": PROJECT_TERMS}, ProjectTerms)


@pytest.mark.parametrize(
    "said",
    [None, {}, {"key": None}, {"key": "ed25519:other", "value": "x"}],
    ids=["none", "empty", "no key", "another key"],
)
def test_a_key_without_a_signature_that_could_fit_does_not_count(said: Any) -> None:
    policy = Policy(keys=frozenset({"ed25519:k"}))
    assert not is_approval(entry("key", {"signature": said}), "X", policy)


def test_only_who_can_sign_leaves_a_signature() -> None:
    subjects: list[bytes] = []

    def sign(subject: bytes) -> str:
        subjects.append(subject)
        return "signed"

    assert signature(ADA, "X", None, "agreed", {"a": 1}) == {}
    found = signature(Approval(Actor("x", "key"), "ed25519:k", sign), "X", "p", "agreed", {"a": 1})
    assert found == {"signature": {"key": "ed25519:k", "value": "signed"}}
    assert subjects == [approval_subject("X", "p", "agreed", {"a": 1})]


def test_what_is_signed_differs_by_chain_place_kind_and_content_and_not_by_the_signature_itself() -> None:
    base = approval_subject("X", "p", "agreed", {"a": 1})
    others = {
        approval_subject("Y", "p", "agreed", {"a": 1}),
        approval_subject("X", "q", "agreed", {"a": 1}),
        approval_subject("X", None, "agreed", {"a": 1}),
        approval_subject("X", "p", "decided", {"a": 1}),
        approval_subject("X", "p", "agreed", {"a": 2}),
        approval_subject("X", "p", "agreed", {"a": 1, "b": 1}),
    }
    assert len(others) == 6
    assert base not in others
    assert approval_subject("X", "p", "agreed", {"signature": {"key": "k"}, "a": 1}) == base


# Signs by which an agent or a CI system is recognised.


@pytest.fixture
def no_ancestors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs these tests: nobody stands above them."""
    monkeypatch.setattr(approval, "_ancestor_programs", list)


@pytest.mark.usefixtures("no_ancestors")
@pytest.mark.parametrize("name", AGENT_VARIABLES)
def test_an_agents_variable_gives_it_away(name: str) -> None:
    assert detected_agent({name: "1", "HOME": "/"}) == name
    assert detected_agent({name: ""}) is None
    assert detected_agent({name.lower(): "1"}) is None


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "cursor-agent"])
def test_a_program_above_gives_the_agent_away(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(approval, "_ancestor_programs", lambda: ["bash", name, "systemd"])
    assert detected_agent({}) == name
    monkeypatch.setattr(approval, "_ancestor_programs", lambda: ["bash", f"{name}x", "claude-like"])
    assert detected_agent({}) is None


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell who stands above")
@pytest.mark.parametrize("name", ["claude", "a (b) c"])
def test_the_programs_that_led_here_are_known_by_their_names(tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    shutil.copy(shutil.which("sh") or "/bin/sh", program)
    output = tmp_path / "output.json"
    script = tmp_path / "child.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "from donewhen.jobs.ledger.approval import _ancestor_programs, detected_agent\n"
        "pathlib.Path(sys.argv[1]).write_text(json.dumps([_ancestor_programs(), detected_agent({})]))\n"
    )
    # Without the last command the shell would become the child itself.
    line = f"'{sys.executable}' '{script}' '{output}'; exit $?"
    subprocess.run([str(program), "-c", line], check=True, env={"PATH": os.environ["PATH"]})
    ancestors, sign = json.loads(output.read_text())
    assert ancestors[0] == name
    assert len(ancestors) >= 2
    assert (sign == "claude") if name == "claude" else (sign is None or sign in ancestors[1:])


def test_where_the_system_does_not_tell_nobody_stands_above(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    assert approval._ancestor_programs() == []


def test_a_circle_of_processes_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "77 (bash) S 77 1 1")
    assert set(approval._ancestor_programs()) == {"bash"}


@pytest.mark.parametrize(
    ("variable", "found"),
    [
        ("CI=true", True), ("CI=True", True), ("CI=1", True), ("CI=false", False), ("CI=", False), ("HOME=/", False),
        ("GITHUB_ACTIONS=true", True), ("GITLAB_CI=true", True), ("BUILDKITE=true", True), ("CIRCLECI=true", True),
        ("JENKINS_URL=x", True), ("TF_BUILD=True", True), ("TEAMCITY_VERSION=1", True), ("GITHUB_ACTIONS=", False),
    ],
)  # fmt: skip
def test_a_ci_system_is_known_by_its_variables(variable: str, found: bool) -> None:
    name, _, value = variable.partition("=")
    assert is_ci({name: value}) is found


@pytest.mark.parametrize(("reads", "shows"), [(True, True), (True, False), (False, True), (False, False)])
def test_somebody_sits_there_when_they_can_both_type_and_see(
    monkeypatch: pytest.MonkeyPatch, reads: bool, shows: bool
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: reads, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: shows, raising=False)
    assert is_at_terminal() is (reads and shows)


def test_a_person_has_the_name_of_their_account_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, "the-boss")
    assert person_at_terminal().kind == "person"
    assert unproved_actor().kind == "agent"
    assert person_at_terminal().name == unproved_actor().name != "the-boss"

    def nobody(_: int) -> Any:
        raise KeyError

    monkeypatch.setattr(approval.pwd, "getpwuid", nobody)
    assert person_at_terminal().name == f"user {os.getuid()}"


# What follows from it in a workspace.


def test_ci_counts_only_after_a_person_has_agreed_that_it_may(workspace: Workspace) -> None:
    assert agree_to(workspace, CI) == ["proposed", "proposed"]
    (workspace.root / "donewhen.toml").write_text(ALLOWED)
    assert agree_to(workspace, CI) == ["proposed", "proposed"]
    assert agree_to(workspace, ADA, job=False)[0] == "agreed"
    assert agree_to(workspace, CI) == ["agreed", "agreed"]


def test_a_word_that_did_not_count_when_it_was_given_does_not_count_later(workspace: Workspace) -> None:
    agree_to(workspace, CI)
    (workspace.root / "donewhen.toml").write_text(ALLOWED)
    states = agree_to(workspace, ADA, job=False)
    assert states[0] == "agreed"
    assert states[1] != "agreed"


@pytest.mark.parametrize("who", [CI, BOT], ids=["ci", "agent"])
def test_an_agent_that_allows_ci_itself_gets_nothing(workspace: Workspace, who: Approval) -> None:
    assert agree_to(workspace, ADA, job=False)[0] == "agreed"
    (workspace.root / "donewhen.toml").write_text(ALLOWED)
    states = agree_to(workspace, who)
    assert states[0] == "voided"
    assert states[1] != "agreed"
    (workspace.root / "donewhen.toml").unlink()
    assert agree_to(workspace, who)[1] != "agreed"


def test_taking_the_permission_out_of_the_file_does_not_take_it_from_the_seal(workspace: Workspace) -> None:
    settings = workspace.root / "donewhen.toml"
    settings.write_text(ALLOWED)
    agree_to(workspace, ADA, job=False)
    settings.unlink()
    agree(workspace, agreement_proposals(workspace, [workspace.job_at(next(workspace.places()).path)])[1], CI)
    assert agree_to(workspace, BOT) == ["agreed", "agreed"]
    assert agree_to(workspace, CI, job=False)[1] != "agreed"


def test_when_a_person_takes_the_permission_back_what_ci_agreed_to_holds_no_longer(workspace: Workspace) -> None:
    settings = workspace.root / "donewhen.toml"
    settings.write_text(ALLOWED)
    agree_to(workspace, ADA, job=False)
    assert agree_to(workspace, CI) == ["agreed", "agreed"]
    settings.unlink()
    states = agree_to(workspace, ADA, job=False)
    assert states[0] == "agreed"
    assert states[1] != "agreed"


def test_a_ci_run_at_the_command_line_needs_both_ci_and_the_permission(
    workspace: Workspace, donewhen: Command, as_person: Callable[..., Any]
) -> None:
    outside = donewhen(["agree", "--ci", "--json"], workspace.root)
    assert outside.returncode == 2
    assert workspace.ledger.chains() == ()
    environment = {**os.environ, "CI": "true", "GITHUB_ACTOR": "octo"}
    for name in AGENT_VARIABLES:
        environment.pop(name, None)
    refused = donewhen(["agree", "--ci", "--json"], workspace.root, environment)
    assert refused.returncode == 1
    answer = json.loads(refused.stdout)
    assert [finding["code"] for finding in answer["findings"]] == ["approver"]
    assert (answer["data"]["agreed"], answer["data"]["by"]) == ([], {"name": "octo", "kind": "ci"})
    (workspace.root / "donewhen.toml").write_text(ALLOWED)
    assert as_person(["agree"], workspace.root).status == 0
    add_job(workspace, "Second", criteria=["It prints."])
    assert donewhen(["agree", "--ci"], workspace.root, environment).returncode == 0


def test_an_agent_that_pretends_to_be_ci_is_still_an_agent(workspace: Workspace, donewhen: Command) -> None:
    (workspace.root / "donewhen.toml").write_text(ALLOWED)
    agree_to(workspace, ADA, job=False)
    environment = {**os.environ, "CI": "true", "CLAUDECODE": "1"}
    done = donewhen(["agree", "--ci", "--json"], workspace.root, environment)
    assert done.returncode != 0
    assert agree_to(workspace, BOT)[1] != "agreed"


@pytest.mark.parametrize(
    ("variables", "answer", "status", "agreed"),
    [({}, None, 0, True), ({}, "yes", 1, False), ({"CLAUDECODE": "1"}, None, 1, False)],
    ids=["the word", "another word", "an agents terminal"],
)
def test_a_person_types_the_word_that_is_shown(
    workspace: Workspace,
    as_person: Callable[..., Any],
    variables: dict[str, str],
    answer: str | None,
    status: int,
    agreed: bool,
) -> None:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden} | variables
    played = as_person(["agree"], workspace.root, answer=answer, env=environment)
    assert played.status == status
    states = [
        proposal.agreement.state
        for proposal in agreement_proposals(workspace, [workspace.job_at(next(workspace.places()).path)])
    ]
    assert (states == ["agreed", "agreed"]) is agreed


def test_without_a_terminal_the_word_of_whoever_runs_it_is_an_agents(workspace: Workspace, donewhen: Command) -> None:
    done = donewhen(["agree", "--json"], workspace.root)
    assert done.returncode == 1
    assert json.loads(done.stdout)["data"]["by"]["kind"] == "agent"
    entries = [workspace.ledger.read(name).entries for name in workspace.ledger.chains()]
    assert [[entry.by.kind for entry in chain] for chain in entries] == [["agent"], ["agent"]]
