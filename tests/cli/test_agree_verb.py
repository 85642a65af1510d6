"""Agreeing, as people, programs, keys and CI systems meet it at the command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
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
ECHO = "It says hello\n  check: run echo hello"


def surroundings(**extra: str) -> dict[str, str]:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS", PASSPHRASE}
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"} | extra


def envelope(done: subprocess.CompletedProcess[str], command: str = "agree") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told) == {"schema", "command", "ok", "data", "findings"}
    assert (told["schema"], told["command"], told["ok"]) == ("donewhen/v1", command, done.returncode == 0)
    assert all(set(one) == {"code", "message", "where", "next"} for one in told["findings"])
    return told


def codes(told: Mapping[str, Any]) -> list[str]:
    return [one["code"] for one in told["findings"]]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    return add_job(shop, "Greet", criteria=[ECHO])


def seal(shop: Workspace, *jobs: Job) -> None:
    for proposal in agreement_proposals(shop, jobs):
        agree(shop, proposal, Approval(person_at_terminal()))


def kinds(shop: Workspace, chain: str) -> list[str]:
    return [entry.by.kind for entry in shop.ledger.read(chain).entries]


def test_it_explains_itself(donewhen: Donewhen, tmp_path: Path) -> None:
    shown = donewhen(["agree", "-h"], tmp_path)
    assert shown.returncode == 0
    assert shown.stdout.startswith("Usage: donewhen agree")
    for option in ("--key", "--ci", "--project", "--json", "--notes"):
        assert option in shown.stdout


def test_a_person_who_types_the_word_seals_the_project_and_its_jobs(
    shop: Workspace, job: Job, as_person: Person
) -> None:
    played = as_person(["agree", "--notes", "as discussed"], shop.root)
    assert played.status == 0
    assert "└ checked by: run echo hello" in played.screen
    project = shop.project()
    assert kinds(shop, job.id) == kinds(shop, project.id) == ["person"]
    fields = shop.job(job.id).document.fields
    assert fields["agreement_status"] == "agreed"
    assert str(fields["agreed_by"]).endswith(" (person)")
    assert shop.ledger.read(project.id).entries[-1].data["notes"] == "as discussed"
    assert [proposal.agreement.state for proposal in agreement_proposals(shop, [shop.job(job.id)])] == [
        "agreed",
        "agreed",
    ]


@pytest.mark.parametrize("answer", ["amber-amber-amber", "", "yes"], ids=["another word", "nothing", "yes"])
def test_a_person_who_types_anything_else_leaves_everything_as_it_is(
    shop: Workspace, job: Job, as_person: Person, answer: str
) -> None:
    before = job.path.read_bytes()
    played = as_person(["agree"], shop.root, answer=answer)
    assert played.status == 1
    assert_sentences(played.screen)
    assert shop.ledger.chains() == ()
    assert job.path.read_bytes() == before


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CODEX_SANDBOX", "DONEWHEN_AGENT"])
def test_an_agent_at_a_terminal_is_told_by_its_mark_and_is_not_even_asked(
    shop: Workspace, job: Job, as_person: Person, variable: str
) -> None:
    played = as_person(["agree"], shop.root, env=surroundings(**{variable: "1"}))
    assert played.status == 1
    assert_sentences(played.screen)
    assert "press Enter" not in played.screen
    assert kinds(shop, job.id) == ["agent"]
    assert "agreement_status" not in shop.job(job.id).document.fields
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.seal is None


def test_without_a_terminal_it_is_an_agents_word_which_is_recorded_and_does_not_count(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    done = donewhen(["agree", "--json"], shop.root)
    told = envelope(done)
    assert done.returncode == 1
    assert codes(told) == ["approver"]
    assert told["data"]["by"]["kind"] == "agent"
    assert told["data"]["agreed"] == []
    assert told["data"]["states"] == {shop.project().id: "proposed", job.id: "proposed"}
    assert_sentences(done.stderr)
    assert kinds(shop, job.id) == ["agent"]
    assert "agreement_status" not in shop.job(job.id).document.fields


def test_what_was_agreed_before_is_shown_as_a_difference_with_its_place(
    shop: Workspace, job: Job, as_person: Person
) -> None:
    seal(shop, job)
    job.path.write_text(job.path.read_text().replace("reward_target: 80", "reward_target: 60"))
    line = job.path.read_text().split("\n").index("reward_target: 60") + 1
    played = as_person(["agree"], shop.root)
    assert played.status == 0
    assert "▼ loosened  reward_target: 80 → 60" in played.screen
    assert f"plan.md:{line}" in played.screen
    assert "It says hello" not in played.screen
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.state == "agreed"


def test_when_everything_is_agreed_nobody_is_asked(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    done = donewhen(["agree", "--json"], shop.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert envelope(done)["data"] == {"agreed": []}
    assert kinds(shop, job.id) == ["person"]


@pytest.mark.parametrize(
    ("criteria", "commands", "code"),
    [
        ((), (), "placeholder"),
        (("TODO",), (), "placeholder"),
        (("x",), (), "placeholder"),
        (("It works",), ("make test || true",), "command"),
    ],
    ids=["template", "todo", "one letter", "shell"],
)
def test_what_says_nothing_or_can_not_be_run_is_not_agreed_to(
    shop: Workspace, as_person: Person, donewhen: Donewhen, criteria: Any, commands: Any, code: str
) -> None:
    # A command that needs a shell is not added; it can still be typed into the plan.
    made = add_job(shop, "Greet", criteria=criteria, commands=["make test"] if commands else ())
    made.path.write_text(made.path.read_text().replace("make test", *commands) if commands else made.path.read_text())
    told = envelope(donewhen(["agree", "--json"], shop.root))
    assert code in codes(told)
    assert next(one for one in told["findings"] if one["code"] == code)["where"].startswith(shop.where(made.path))
    assert as_person(["agree"], shop.root).status == 1
    assert shop.ledger.read(made.id).entries == ()


def test_a_job_without_criteria_is_not_agreed_to(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    job.path.write_text(job.path.read_text().replace("Acceptance Criteria", "Ideas"))
    assert "criteria_missing" in codes(envelope(donewhen(["agree", "--json"], shop.root)))
    assert shop.ledger.read(job.id).entries == ()


def test_only_the_jobs_that_are_named_are_agreed_to(shop: Workspace, job: Job, as_person: Person) -> None:
    other = add_job(shop, "Leave", criteria=["It says goodbye"])
    assert as_person(["agree", "001"], shop.root).status == 0
    assert kinds(shop, job.id) == ["person"]
    assert kinds(shop, other.id) == []


@pytest.mark.parametrize(
    "name",
    ["nothing", "greet", ""],
    ids=["unknown", "ambiguous", "empty"],
)
def test_a_job_that_can_not_be_told_is_a_usage_error(shop: Workspace, job: Job, donewhen: Donewhen, name: str) -> None:
    add_job(shop, "Greet", criteria=[ECHO])
    done = donewhen(["agree", name, "--json"], shop.root)
    assert done.returncode == 2
    told = envelope(done)
    assert codes(told) == ["usage"]
    assert_sentences(told["findings"][0]["message"])
    assert shop.ledger.chains() == ()


def test_without_a_project_it_says_how_to_begin(tmp_path: Path, donewhen: Donewhen) -> None:
    done = donewhen(["agree", "--json"], tmp_path)
    told = envelope(done)
    assert (done.returncode, codes(told)) == (2, ["workspace"])
    assert_sentences(told["findings"][0]["next"])


def test_one_broken_plan_is_named_and_keeps_nobody_from_the_others(
    shop: Workspace, job: Job, as_person: Person
) -> None:
    broken = add_job(shop, "Broken", criteria=[ECHO])
    broken.path.write_text("---\ntitle: [\n---\n")
    played = as_person(["agree"], shop.root)
    assert f"{shop.where(broken.path)}:3:1" in played.screen
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.state == "agreed"
    assert played.status == 1
    assert kinds(shop, broken.id) == []


def test_a_job_can_be_agreed_to_by_name_beside_a_broken_one(shop: Workspace, job: Job, as_person: Person) -> None:
    add_job(shop, "Broken", criteria=[ECHO]).path.write_text("---\ntitle: [\n---\n")
    assert as_person(["agree", job.id], shop.root).status == 0
    assert kinds(shop, job.id) == ["person"]


def test_a_job_with_an_impossible_id_keeps_nobody_from_the_others(shop: Workspace, job: Job, as_person: Person) -> None:
    odd = shop.root / "jobs" / "odd" / "plan.md"
    odd.parent.mkdir()
    odd.write_text("---\nwork_item_id: ../../../evil\n---\n\n## Acceptance Criteria\n\n- It works\n")
    as_person(["agree"], shop.root)
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.state == "agreed"


def test_a_broken_configuration_is_named(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    (shop.root / "donewhen.toml").write_text("approval = [")
    done = donewhen(["agree", "--json"], shop.root)
    told = envelope(done)
    assert (done.returncode, codes(told)) == (2, ["config"])
    assert told["findings"][0]["where"].endswith("donewhen.toml")


def test_a_title_can_neither_drive_the_terminal_nor_add_lines_to_what_is_agreed(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    title = r"\e]0;owned\a\e[31mred \u202Edlrow\u202C [bold]loud[/bold]\n    stakes: low"
    job.path.write_text(job.path.read_text().replace("title: Greet", f'title: "{title}"'))
    shown = donewhen(["agree"], shop.root, surroundings()).stdout
    assert not set("\x1b\x07\u202e\u202c") & set(shown)
    assert "red dlrow [bold]loud[/bold]" in shown
    lines = [line.strip() for line in shown.splitlines()]
    assert sum(line.startswith("For this job: stakes normal,") for line in lines) == 1
    assert not [line for line in lines if line.startswith(("stakes", "! stakes"))]


def test_an_output_can_not_add_lines_to_what_is_agreed(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    text = job.path.read_text().replace("  - outputs/primary.md", '  - "a.md\\n    stakes: low"')
    job.path.write_text(text)
    shown = donewhen(["agree"], shop.root, surroundings()).stdout
    lines = [line.strip() for line in shown.splitlines()]
    assert sum(line.startswith("For this job: stakes normal,") for line in lines) == 1
    assert not [line for line in lines if line.startswith(("stakes", "! stakes"))]


def test_a_file_in_the_place_of_the_folder_is_an_error_with_its_path(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    shop.folder.rename(shop.root / "aside")
    shop.folder.write_text("")
    done = donewhen(["agree", "--json"], shop.root)
    told = envelope(done)
    assert (done.returncode, codes(told)) == (3, ["io"])
    assert told["findings"][0]["where"].startswith(str(shop.folder))


class Key:
    """A key of somebody who has no terminal here."""

    def __init__(self, folder: Path, donewhen: Donewhen) -> None:
        self.path = folder / "my.key"
        self.environment = surroundings(**{PASSPHRASE: "open sesame"})
        made = donewhen(["key", "new", str(self.path), "--json"], folder, self.environment)
        self.public = envelope(made, "key")["data"]["key"]


@pytest.fixture
def key(tmp_path_factory: pytest.TempPathFactory, donewhen: Donewhen) -> Key:
    return Key(tmp_path_factory.mktemp("home"), donewhen)


def test_a_key_that_a_person_has_trusted_agrees_to_a_new_job(
    shop: Workspace, key: Key, as_person: Person, donewhen: Donewhen
) -> None:
    (shop.root / "donewhen.toml").write_text(f'[approval]\nkeys = ["{key.public}"]\n')
    assert as_person(["agree"], shop.root).status == 0
    job = add_job(shop, "Greet", criteria=[ECHO])
    done = donewhen(["agree", "--key", str(key.path), "--json"], shop.root, key.environment)
    told = envelope(done)
    assert (done.returncode, told["data"]["agreed"], told["data"]["by"]["kind"]) == (0, [job.id], "key")
    assert shop.job(job.id).document.fields["agreement_status"] == "agreed"
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.state == "agreed"


@pytest.mark.parametrize("listed", [False, True], ids=["not listed", "listed by the agent"])
def test_a_key_that_no_person_has_trusted_does_not_count(
    shop: Workspace, job: Job, key: Key, donewhen: Donewhen, listed: bool
) -> None:
    seal(shop)
    if listed:
        (shop.root / "donewhen.toml").write_text(f'[approval]\nkeys = ["{key.public}"]\n')
    done = donewhen(["agree", "--key", str(key.path), "--json"], shop.root, key.environment)
    told = envelope(done)
    assert (done.returncode, codes(told), told["data"]["agreed"]) == (1, ["approver"], [])
    assert kinds(shop, job.id) == ["key"]
    assert "agreement_status" not in shop.job(job.id).document.fields


def test_a_wrong_passphrase_agrees_to_nothing(shop: Workspace, job: Job, key: Key, donewhen: Donewhen) -> None:
    done = donewhen(["agree", "--key", str(key.path), "--json"], shop.root, surroundings(**{PASSPHRASE: "no"}))
    assert (done.returncode, codes(envelope(done))) == (2, ["key"])
    assert shop.ledger.chains() == ()


@pytest.mark.parametrize("more", [["--ci"], ["--ci", "--key", "jobs/plan.md"]], ids=["no ci here", "ci and key"])
def test_ways_to_agree_that_can_not_be_meant_are_usage_errors(
    shop: Workspace, job: Job, donewhen: Donewhen, more: list[str]
) -> None:
    done = donewhen(["agree", "--json", *more], shop.root)
    assert (done.returncode, codes(envelope(done))) == (2, ["usage"])
    assert shop.ledger.chains() == ()


def test_ci_agrees_where_a_person_has_allowed_it(shop: Workspace, donewhen: Donewhen) -> None:
    (shop.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    seal(shop)
    job = add_job(shop, "Greet", criteria=[ECHO])
    environment = surroundings(GITHUB_ACTIONS="true", GITHUB_ACTOR="octocat")
    told = envelope(donewhen(["agree", "--ci", "--json"], shop.root, environment))
    assert told["ok"]
    assert told["data"]["by"] == {"name": "octocat", "kind": "ci"}
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.state == "agreed"


def test_ci_does_not_agree_where_only_the_file_allows_it(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop)
    (shop.root / "donewhen.toml").write_text("[approval]\nci = true\n")
    done = donewhen(["agree", "--ci", "--json"], shop.root, surroundings(CI="true"))
    told = envelope(done)
    assert (done.returncode, codes(told), told["data"]["agreed"]) == (1, ["approver"], [])
    assert agreement_proposals(shop, [shop.job(job.id)])[1].agreement.seal is None


def test_a_new_job_in_an_agreed_project_is_proposed_and_not_called_unsealed(
    shop: Workspace, donewhen: Donewhen
) -> None:
    seal(shop)
    add_job(shop, "Greet", criteria=[ECHO])
    told = envelope(donewhen(["status", "--json"], shop.root), "status")
    assert [one["agreement"] for one in told["data"]["jobs"]] == ["proposed"]
