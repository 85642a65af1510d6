"""Does the record hold, and what was agreed? `donewhen audit`, `anchor` and `contract`."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.terms import terms_hash
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
Git = Callable[..., str]


def envelope(done: subprocess.CompletedProcess[str], command: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told) == {"schema", "command", "ok", "data", "findings"}
    assert (told["schema"], told["command"], told["ok"]) == ("donewhen/v1", command, done.returncode == 0)
    assert all(set(one) == {"code", "message", "where", "next"} for one in told["findings"])
    return told


def codes(done: subprocess.CompletedProcess[str], command: str) -> list[str]:
    return [one["code"] for one in envelope(done, command)["findings"]]


@pytest.fixture
def shop(repository: Path) -> Workspace:
    return create_project(repository, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    return add_job(shop, "Greet", criteria=["It says hello\n  check: run echo hello"])


def seal(shop: Workspace, *jobs: Job) -> None:
    for proposal in agreement_proposals(shop, jobs):
        agree(shop, proposal, Approval(person_at_terminal()))


def commit(git: Git, shop: Workspace, message: str = "work") -> None:
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-q", "--allow-empty", "-m", message)


@pytest.mark.parametrize("verb", ["audit", "anchor", "contract", "contract show", "contract diff"])
def test_they_explain_themselves(donewhen: Donewhen, tmp_path: Path, verb: str) -> None:
    shown = donewhen([*verb.split(), "-h"], tmp_path)
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: donewhen {verb}")


@pytest.mark.parametrize("verb", ["audit", "anchor", "contract show", "contract diff"])
def test_without_a_project_they_say_how_to_begin(tmp_path: Path, donewhen: Donewhen, verb: str) -> None:
    done = donewhen([*verb.split(), "--json"], tmp_path)
    assert (done.returncode, codes(done, verb.split()[0])) == (2, ["workspace"])


# audit


def test_an_honest_record_is_clean_here_and_in_a_fresh_clone(
    shop: Workspace, job: Job, donewhen: Donewhen, git: Git, tmp_path: Path
) -> None:
    seal(shop, job)
    run_as_evidence(shop, job, ["echo", "hello"], Actor("bot"))
    commit(git, shop)
    told = envelope(donewhen(["audit", "--json"], shop.root), "audit")
    assert told["ok"]
    counted = {name: told["data"][name] for name in ("clean", "jobs", "chains", "entries", "evidence", "anchors")}
    assert counted == {"clean": True, "jobs": 1, "chains": 2, "entries": 3, "evidence": 3, "anchors": 0}
    assert [one["code"] for one in told["data"]["warnings"]] == ["anchor_absent"]
    git(tmp_path, "clone", "-q", str(shop.root), "another place")
    done = donewhen(["audit", "--project", str(tmp_path / "another place"), "--json"], tmp_path)
    assert envelope(done, "audit")["data"] == told["data"]


def test_a_finding_is_told_with_its_code_its_place_and_what_to_do(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    seal(shop, job)
    text = job.path.read_text().replace("\nstatus: planned\n", "\nstatus: done\n")
    job.path.write_text(text)
    line = text.split("\n").index("status: done") + 1
    done = donewhen(["audit"], shop.root)
    assert done.returncode == 1
    assert f"✗ tampered  {shop.where(job.path)}:{line}\n" in done.stdout
    assert_sentences(done.stdout)
    assert codes(donewhen(["-C", str(shop.root), "audit", "--json"], Path("/")), "audit") == ["tampered"]


def test_one_broken_plan_is_one_finding_and_the_rest_is_audited(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    broken = add_job(shop, "Broken")
    broken.path.write_text("---\ntitle: [\n---\n")
    job.path.write_text(job.path.read_text().replace("reward_target: 80", "reward_target: 1"))
    told = envelope(donewhen(["audit", "--json"], shop.root), "audit")
    assert sorted(one["code"] for one in told["findings"]) == ["document", "voided"]
    assert told["data"]["jobs"] == 2


def test_an_audit_with_a_broken_configuration_is_not_clean(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    (shop.root / "donewhen.toml").write_text("[approval\n")
    done = donewhen(["audit", "--json"], shop.root)
    assert done.returncode != 0
    assert "config" in codes(done, "audit")


@pytest.mark.parametrize("state", ["unsealed", "voided"])
def test_the_next_steps_that_an_audit_names_can_be_taken(
    shop: Workspace, job: Job, donewhen: Donewhen, state: str
) -> None:
    if state == "voided":
        (shop.root / "donewhen.toml").write_text("[stop]\nfiles = ['README.md']\n")
        seal(shop, job)
        (shop.root / "donewhen.toml").unlink()
    else:
        typed = shop.project_file.read_text().replace("agreement_status: proposed", "agreement_status: agreed")
        shop.project_file.write_text(typed)
    told = envelope(donewhen(["audit", "--json"], shop.root), "audit")
    found = [one for one in (*told["findings"], *told["data"]["warnings"]) if one["code"] == state]
    assert found
    for one in found:
        program, *arguments = one["next"].split()
        assert program == "donewhen"
        assert donewhen(arguments, shop.root).returncode != 2, one["next"]


@pytest.mark.parametrize("verb", ["show", "diff"])
def test_contract_takes_the_projects_own_id(shop: Workspace, donewhen: Donewhen, verb: str) -> None:
    seal(shop)
    assert donewhen(["contract", verb, shop.project().id], shop.root).returncode == 0


# anchor


def test_the_heads_stand_in_a_note_and_the_audit_knows_them(
    shop: Workspace, job: Job, donewhen: Donewhen, git: Git
) -> None:
    seal(shop, job)
    commit(git, shop)
    told = envelope(donewhen(["anchor", "--json"], shop.root), "anchor")
    assert told["data"]["commit"] == git(shop.root, "rev-parse", "HEAD").strip()
    note = git(shop.root, "notes", "--ref=donewhen", "show", "HEAD")
    for chain in (shop.project().id, job.id):
        assert f"Donewhen-Head: {chain} 1 {shop.ledger.head(chain)}" in note
    assert sorted(told["data"]["heads"]) == sorted(note.strip().splitlines())
    audited = envelope(donewhen(["audit", "--json"], shop.root), "audit")
    assert (audited["data"]["anchors"], audited["data"]["warnings"]) == (2, [])


def test_the_heads_as_trailers_serve_as_well_and_change_nothing_by_themselves(
    shop: Workspace, job: Job, donewhen: Donewhen, git: Git
) -> None:
    seal(shop, job)
    trailers = donewhen(["anchor", "--trailer"], shop.root).stdout
    assert len(trailers.splitlines()) == 2
    commit(git, shop, f"Work\n\n{trailers}")
    run_as_evidence(shop, job, ["echo", "hello"], Actor("bot"))
    audited = envelope(donewhen(["audit", "--json"], shop.root), "audit")
    assert (audited["ok"], audited["data"]["anchors"]) == (True, 2)


def test_without_a_commit_there_is_nothing_to_anchor_to(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    done = donewhen(["anchor", "--json"], shop.root)
    told = envelope(done, "anchor")
    assert told["findings"][0]["code"] == "anchor"
    assert_sentences(told["findings"][0]["next"])


# contract


def test_contract_show_prints_what_holds_and_who_sealed_it(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    sealed = agreement_proposals(shop, [job])[1].agreement.terms
    job.path.write_text(job.path.read_text().replace("reward_target: 80", "reward_target: 5"))
    told = envelope(donewhen(["contract", "show", "001", "--json"], shop.root), "contract")["data"]
    assert (told["chain"], told["state"], told["hash"]) == (job.id, "voided", terms_hash(sealed))
    assert told["terms"]["reward_target"] == 80
    shown = donewhen(["contract", "show", "001"], shop.root).stdout
    assert "└ checked by: run echo hello" in shown
    assert "(person)" in shown


def test_contract_show_of_what_nobody_sealed_says_so(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    shown = donewhen(["contract", "show"], shop.root)
    assert shown.returncode == 0
    assert "proposed; not sealed" in shown.stdout
    assert envelope(donewhen(["contract", "show", "--json"], shop.root), "contract")["data"]["state"] == "proposed"


def test_contract_diff_names_each_change_with_its_line(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    text = job.path.read_text().replace("reward_target: 80", "reward_target: 5")
    text = text.replace("## Verification", "- AC-2: It is quick\n  check: manual\n\n## Verification")
    job.path.write_text(text)
    lines = text.split("\n")
    done = donewhen(["contract", "diff", "--json"], shop.root)
    told = envelope(done, "contract")
    assert (done.returncode, codes(done, "contract")) == (1, ["voided"])
    (contract,) = told["data"]["contracts"]
    where = shop.where(job.path)
    assert {(one["kind"], one["field"], one["where"]) for one in contract["changes"]} == {
        ("loosened", "reward_target", f"{where}:{lines.index('reward_target: 5') + 1}"),
        ("added", "criteria", f"{where}:{lines.index('- AC-2: It is quick') + 1}"),
    }
    shown = donewhen(["contract", "diff"], shop.root).stdout
    assert "▼ loosened  reward_target: 80 → 5" in shown
    assert "+ added     criteria: It is quick\n      └ checked by: a person\n" in shown


def test_contract_diff_is_satisfied_with_more_and_with_nothing(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    done = donewhen(["contract", "diff"], shop.root)
    assert done.returncode == 0
    assert_sentences(done.stdout)
    job.path.write_text(job.path.read_text().replace("reward_target: 80", "reward_target: 90"))
    done = donewhen(["contract", "diff", "001"], shop.root)
    assert done.returncode == 0
    assert "▲ tightened reward_target: 80 → 90" in done.stdout


def test_contract_diff_of_what_was_never_agreed_fails(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    done = donewhen(["contract", "diff", "--json"], shop.root)
    assert (done.returncode, codes(done, "contract")) == (1, ["proposed", "proposed"])


def test_contract_diff_shows_the_others_beside_a_broken_plan(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    add_job(shop, "Broken").path.write_text("---\ntitle: [\n---\n")
    job.path.write_text(job.path.read_text().replace("reward_target: 80", "reward_target: 5"))
    done = donewhen(["contract", "diff", "--json"], shop.root)
    assert done.returncode == 1
    assert sorted(codes(done, "contract")) == ["document", "voided"]


@pytest.mark.parametrize("verb", ["show", "diff"])
@pytest.mark.parametrize("name", ["009", "greet"], ids=["unknown", "ambiguous"])
def test_contract_of_a_job_that_can_not_be_told_is_a_usage_error(
    shop: Workspace, job: Job, donewhen: Donewhen, verb: str, name: str
) -> None:
    add_job(shop, "Greet")
    done = donewhen(["contract", verb, name, "--json"], shop.root)
    assert (done.returncode, codes(done, "contract")) == (2, ["usage"])


def test_contract_without_a_verb_or_with_an_unknown_one_is_a_usage_error(shop: Workspace, donewhen: Donewhen) -> None:
    for arguments in (["contract", "--json"], ["contract", "sign", "--json"]):
        assert donewhen(arguments, shop.root).returncode == 2


def test_a_change_is_shown_harmlessly(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    evil = r'  - "x\e[2J\u202E[red]\n    ▲ tightened reward_target: 80 → 100"'
    job.path.write_text(job.path.read_text().replace("  - outputs/primary.md", evil))
    shown = donewhen(["contract", "diff", "001"], shop.root).stdout
    assert not set("\x1b\u202e") & set(shown)
    assert "[red]" in shown
    assert not any(line.strip().startswith("▲") for line in shown.splitlines())


def test_the_audit_goes_on_where_the_folder_is_gone_or_is_a_file(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    shutil.rmtree(shop.folder)
    assert envelope(donewhen(["audit", "--json"], shop.root), "audit")["data"]["chains"] == 0
    assert not shop.folder.exists()
    shop.folder.write_text("")
    done = donewhen(["audit", "--json"], shop.root)
    assert (done.returncode, codes(done, "audit")) == (3, ["io"])
