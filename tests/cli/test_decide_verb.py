"""Decisions, sign-offs and keys at the command line: `donewhen decide`, `sign-off` and `key`."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
Person = Callable[..., Any]

PASSPHRASE = "DONEWHEN_PASSPHRASE"
WHY = ["--reason", "The API changed under us."]


def surroundings(**extra: str) -> dict[str, str]:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", PASSPHRASE}
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"} | extra


def envelope(done: subprocess.CompletedProcess[str], command: str = "decide") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told) == {"schema", "command", "ok", "data", "findings"}
    assert (told["schema"], told["command"], told["ok"]) == ("donewhen/v1", command, done.returncode == 0)
    assert all(set(one) == {"code", "message", "where", "next"} for one in told["findings"])
    return told


def codes(done: subprocess.CompletedProcess[str], command: str = "decide") -> list[str]:
    return [one["code"] for one in envelope(done, command)["findings"]]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    made = add_job(shop, "Greet", criteria=["It is friendly"], outputs=["/hello.txt"])
    (shop.root / "hello.txt").write_text("hello\n")
    seal(shop, made)
    return made


def seal(shop: Workspace, *jobs: Job) -> None:
    for proposal in agreement_proposals(shop, jobs):
        agree(shop, proposal, Approval(person_at_terminal()))


def state(shop: Workspace, job: Job) -> str:
    return agreement_proposals(shop, [shop.job(job.id)])[1].agreement.state


def decisions(shop: Workspace, job: Job) -> list[tuple[str, str]]:
    entries = shop.ledger.read(job.id).entries
    return [(entry.data["decision"], entry.by.kind) for entry in entries if entry.type == "decided"]


@pytest.mark.parametrize("verb", ["decide", "sign-off", "key", "key new", "key show"])
def test_they_explain_themselves(donewhen: Donewhen, tmp_path: Path, verb: str) -> None:
    shown = donewhen([*verb.split(), "-h"], tmp_path)
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: donewhen {verb}")


# decide


@pytest.mark.parametrize(
    ("option", "kind", "changed"),
    [
        (["--raise-budget", "6"], "raise_budget", {"max_iterations": 6}),
        (["--target", "60"], "target", {"reward_target": 60}),
        (["--stakes", "low"], "stakes", {"stakes": "low", "reward_target": 70, "max_iterations": 2}),
        (["--rescope"], "rescope", {}),
        (["--split"], "split", {}),
        (["--cancel"], "cancel", {"status": "cancelled"}),
    ],
    ids=["budget", "target", "stakes", "rescope", "split", "cancel"],
)
def test_what_a_person_decides_is_done_and_stays_agreed(
    shop: Workspace,
    job: Job,
    as_person: Person,
    donewhen: Donewhen,
    option: list[str],
    kind: str,
    changed: dict[str, Any],
) -> None:
    played = as_person(["decide", "001", *option, *WHY], shop.root)
    assert played.status == 0
    assert "(person)" in played.screen
    fields = shop.job(job.id).document.fields
    assert {name: fields[name] for name in changed} == changed
    assert decisions(shop, job) == [(kind, "person")]
    assert state(shop, job) == "agreed"
    assert donewhen(["audit"], shop.root).returncode == 0


@pytest.mark.parametrize("option", [["--raise-budget", "6"], ["--cancel"], ["--stakes", "low"]], ids=lambda one: one[0])
def test_what_an_agent_decides_is_recorded_as_a_proposal_and_changes_nothing(
    shop: Workspace, job: Job, donewhen: Donewhen, option: list[str]
) -> None:
    before = shop.job(job.id).document.text
    done = donewhen(["decide", "001", *option, *WHY, "--json"], shop.root)
    told = envelope(done)
    assert (done.returncode, codes(done)) == (1, ["approver"])
    assert (told["data"]["counts"], told["data"]["changed"], told["data"]["by"]["kind"]) == (False, {}, "agent")
    assert decisions(shop, job)[0][1] == "agent"
    assert shop.job(job.id).document.text == before
    assert state(shop, job) == "agreed"


def test_an_agents_mark_counts_also_at_a_terminal(shop: Workspace, job: Job, as_person: Person) -> None:
    played = as_person(["decide", "001", "--cancel", *WHY], shop.root, env=surroundings(CLAUDECODE="1"))
    assert played.status == 1
    assert "press Enter" not in played.screen
    assert_sentences(played.screen)
    assert decisions(shop, job) == [("cancel", "agent")]
    assert shop.job(job.id).status == "planned"


@pytest.mark.parametrize("answer", ["wrong-word", ""], ids=["another word", "nothing"])
@pytest.mark.parametrize(
    "arguments",
    [["decide", "001", "--cancel", *WHY], ["sign-off", "001", "--criterion", "AC-1", *WHY]],
    ids=["decide", "sign-off"],
)
def test_another_word_decides_nothing(
    shop: Workspace, job: Job, as_person: Person, arguments: list[str], answer: str
) -> None:
    played = as_person(arguments, shop.root, answer=answer)
    assert played.status == 1
    assert_sentences(played.screen)
    assert decisions(shop, job) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["001", *WHY],
        ["001", "--cancel", "--split", *WHY],
        ["001", "--cancel"],
        ["001", "--cancel", "--reason", "  "],
        ["001", "--raise-budget", "3", *WHY],
        ["001", "--raise-budget", "0", *WHY],
        ["001", "--target", "101", *WHY],
        ["001", "--stakes", "none", *WHY],
        ["009", "--cancel", *WHY],
        ["greet", "--cancel", *WHY],
    ],
    ids=["none", "two", "no reason", "blank", "not more", "zero", "target", "stakes", "unknown", "ambiguous"],
)
def test_a_decision_that_can_not_be_meant_is_a_usage_error(
    shop: Workspace, job: Job, donewhen: Donewhen, arguments: list[str]
) -> None:
    add_job(shop, "Greet")
    done = donewhen(["decide", "--json", *arguments], shop.root)
    assert (done.returncode, codes(done)) == (2, ["usage"])
    assert_sentences(envelope(done)["findings"][0]["message"])
    assert decisions(shop, job) == []


@pytest.mark.parametrize("verb", ["decide", "sign-off"])
def test_they_know_their_project_by_folder_and_say_when_there_is_none(
    shop: Workspace, job: Job, donewhen: Donewhen, tmp_path_factory: pytest.TempPathFactory, verb: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    what = [verb, "001", *(["--cancel"] if verb == "decide" else ["--criterion", "AC-1"]), *WHY, "--json"]
    done = donewhen(what, elsewhere)
    assert (done.returncode, codes(done, verb)) == (2, ["workspace"])
    for arguments in ([*what, "--project", str(shop.root)], ["-C", str(shop.root), *what]):
        assert codes(donewhen(arguments, elsewhere), verb) == ["approver"]
    assert len(decisions(shop, job)) == 2


def test_ci_decides_where_a_person_has_allowed_it_and_nowhere_else(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    decide = ["decide", "001", "--target", "60", *WHY, "--ci", "--json"]
    assert codes(donewhen(decide, shop.root, surroundings(CI="true"))) == ["approver"]
    assert shop.job(job.id).reward_target == 80
    (shop.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    seal(shop)
    told = envelope(donewhen(decide, shop.root, surroundings(CI="true")))
    assert (told["ok"], told["data"]["by"]["kind"]) == (True, "ci")
    assert shop.job(job.id).reward_target == 60
    assert state(shop, job) == "agreed"


def test_a_key_decides_where_a_person_has_trusted_it(
    shop: Workspace, job: Job, donewhen: Donewhen, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    environment = surroundings(**{PASSPHRASE: "open sesame"})
    public = envelope(donewhen(["key", "new", "my.key", "--json"], home, environment), "key")["data"]["key"]
    decide = ["decide", "001", "--raise-budget", "9", *WHY, "--key", str(home / "my.key"), "--json"]
    assert codes(donewhen(decide, shop.root, environment)) == ["approver"]
    (shop.root / "donewhen.toml").write_text(f'[approval]\nkeys = ["{public}"]\n')
    seal(shop)
    assert envelope(donewhen(decide, shop.root, environment))["data"]["counts"] is True
    assert shop.job(job.id).max_iterations == 9
    assert state(shop, job) == "agreed"


def test_a_decision_can_not_drive_the_terminal(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    reason = "because \x1b[2J\x1b]0;owned\x07\u202e[bold]so[/bold]"
    shown = donewhen(["decide", "001", "--cancel", "--reason", reason], shop.root).stdout
    assert not set("\x1b\x07\u202e") & set(shown)
    assert "because [bold]so[/bold]" in shown


# sign-off


def test_a_person_signs_off_what_is_checked_by_hand_until_the_outputs_change(
    shop: Workspace, job: Job, as_person: Person, donewhen: Donewhen
) -> None:
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["needs_human"]
    played = as_person(["sign-off", "001", "--criterion", "AC-1", "--reason", "I read it."], shop.root)
    assert played.status == 0
    assert "AC-1: It is friendly" in played.screen
    assert donewhen(["why", "001"], shop.root).returncode == 0
    (shop.root / "hello.txt").write_text("go away\n")
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["needs_human"]
    (shop.root / "hello.txt").write_text("hello\n")
    assert donewhen(["why", "001"], shop.root).returncode == 0


def test_what_an_agent_signs_off_is_asserted_and_takes_nothing_away_from_a_person(
    shop: Workspace, job: Job, as_person: Person, donewhen: Donewhen
) -> None:
    sign = ["sign-off", "001", "--criterion", "AC-1", "--reason", "Looks fine."]
    assert codes(donewhen([*sign, "--json"], shop.root), "sign-off") == ["approver"]
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["needs_human"]
    assert as_person(sign, shop.root).status == 0
    assert donewhen(sign, shop.root).returncode == 1
    assert donewhen(["why", "001"], shop.root).returncode == 0


def test_a_criterion_with_a_check_of_its_own_is_not_signed_off(shop: Workspace, donewhen: Donewhen) -> None:
    made = add_job(shop, "Run", criteria=["It runs\n  check: run true"])
    done = donewhen(["sign-off", made.id, "--criterion", "AC-1", "--reason", "I saw it.", "--json"], shop.root)
    assert (done.returncode, codes(done, "sign-off")) == (2, ["usage"])
    done = donewhen(["sign-off", made.id, "--criterion", "AC-7", "--reason", "I saw it.", "--json"], shop.root)
    assert (done.returncode, codes(done, "sign-off")) == (2, ["config"])
    assert shop.ledger.read(made.id).entries == ()


# key


def test_a_new_key_is_the_owners_alone_and_shows_its_public_half(tmp_path: Path, donewhen: Donewhen) -> None:
    environment = surroundings(**{PASSPHRASE: "open sesame"})
    made = envelope(donewhen(["key", "new", "my.key", "--json"], tmp_path, environment), "key")["data"]
    assert made["key"].startswith("ed25519:")
    assert stat.S_IMODE((tmp_path / "my.key").stat().st_mode) == 0o600
    assert b"ENCRYPTED PRIVATE KEY" in (tmp_path / "my.key").read_bytes()
    shown = donewhen(["key", "show", "my.key"], tmp_path, environment)
    assert (shown.returncode, shown.stdout) == (0, f"{made['key']}\n")


def test_a_person_types_the_passphrase_and_it_is_not_shown(tmp_path: Path, as_person: Person) -> None:
    played = as_person(["key", "new", "my.key"], tmp_path, answer="open sesame")
    assert played.status == 0
    assert "ed25519:" in played.screen
    assert "open sesame" not in played.screen


@pytest.mark.parametrize(
    ("arguments", "passphrase", "code"),
    [
        (["new", "taken.key"], "good", "key"),
        (["new", "other.key"], "", "key"),
        (["new", "other.key"], None, "usage"),
        (["show", "taken.key"], "wrong", "key"),
        (["show", "text.key"], "good", "key"),
        (["show", "missing.key"], "good", "usage"),
    ],
    ids=["overwrite", "no passphrase", "nobody to ask", "wrong passphrase", "no key", "missing"],
)
def test_keys_that_can_not_be_made_or_read_are_said_and_left_alone(
    tmp_path: Path, donewhen: Donewhen, arguments: list[str], passphrase: str | None, code: str
) -> None:
    donewhen(["key", "new", "taken.key"], tmp_path, surroundings(**{PASSPHRASE: "good"}))
    (tmp_path / "text.key").write_text("no key\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    environment = surroundings() if passphrase is None else surroundings(**{PASSPHRASE: passphrase})
    done = donewhen(["key", *arguments, "--json"], tmp_path, environment)
    assert (done.returncode, codes(done, "key")) == (2, [code])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
