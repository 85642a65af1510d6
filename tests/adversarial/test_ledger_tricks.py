"""How the record is rewritten, each trick played on a real ledger next to its innocent twin."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
Git = Callable[..., str]


class Shop:
    """An agreed and evidenced project in git, and somebody who can edit every file of it."""

    def __init__(self, root: Path, donewhen: Donewhen, git: Git) -> None:
        self.root = root
        self._donewhen = donewhen
        self._git = git
        self.workspace = create_project(root, "Shop")
        job = add_job(self.workspace, "Fail", criteria=["It works\n  check: run false"])
        self.id, self.plan = job.id, job.path
        for proposal in agreement_proposals(self.workspace, [job]):
            agree(self.workspace, proposal, Approval(person_at_terminal()))
        run_as_evidence(self.workspace, self.workspace.job(job.id), ["false"], Actor("bot"))
        self.ledger = root / ".donewhen" / "ledger" / f"{job.id}.jsonl"
        self.commit("agreed")

    def git(self, *arguments: str) -> str:
        return self._git(self.root, *arguments)

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def ask(self, *arguments: str, **environment: str) -> tuple[int, list[str]]:
        """What a command finds: its exit status, and the codes of its findings."""
        quiet = {name: value for name, value in os.environ.items() if name not in {*AGENT_VARIABLES, "CI"}}
        done = self._donewhen([*arguments, "--json"], self.root, quiet | environment)
        return done.returncode, [one["code"] for one in json.loads(done.stdout)["findings"]]

    def lines(self) -> list[bytes]:
        return self.ledger.read_bytes().splitlines(keepends=True)

    def forge(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Rewrite the chain with every hash made to fit: nothing inside of it tells."""
        previous: str | None = None
        written = []
        for line in self.lines():
            entry = json.loads(line)
            change(entry)
            entry["prev"] = previous or entry["prev"]
            del entry["hash"]
            entry["hash"] = previous = digest(canonical_json(entry))
            written.append(canonical_json(entry) + b"\n")
        self.ledger.write_bytes(b"".join(written))
        assert self.workspace.ledger.read(self.id).breaks == ()


def passing(entry: dict[str, Any]) -> None:
    """The forger's wish: the run that failed has passed."""
    if entry["type"] == "ran":
        entry["data"] |= {"passed": True, "exit_code": 0}


@pytest.fixture
def shop(repository: Path, donewhen: Donewhen, git: Git) -> Shop:
    return Shop(repository, donewhen, git)


def test_the_honest_twin_of_all_that_follows_audits_clean(shop: Shop) -> None:
    assert shop.ask("audit") == (0, [])
    assert shop.ask("why", shop.id) == (1, ["evidence_failed"])


# Inside a chain


@pytest.mark.parametrize("trick", ["a word changed", "a line dropped", "two lines swapped", "a line doubled", "a gap"])
def test_an_entry_that_was_touched_breaks_the_chain(shop: Shop, trick: str) -> None:
    run_as_evidence(shop.workspace, shop.workspace.job(shop.id), ["true"], Actor("bot"))
    first, second, third = shop.lines()
    changed = {
        "a word changed": [first, second.replace(b'"passed":false', b'"passed":true'), third],
        "a line dropped": [first, third],
        "two lines swapped": [first, third, second],
        "a line doubled": [first, second, second, third],
        "a gap": [first, b"\n", second, third],
    }[trick]
    shop.ledger.write_bytes(b"".join(changed))
    status, found = shop.ask("audit")
    assert status == 1
    assert "chain_broken" in found
    assert "chain_broken" in shop.ask("status")[1]


def test_a_forged_run_with_its_own_hash_only_does_not_follow(shop: Shop) -> None:
    first, second = shop.lines()
    entry = json.loads(second)
    del entry["hash"]
    entry["prev"] = "sha256:" + "0" * 64
    passing(entry)
    entry["hash"] = digest(canonical_json(entry))
    shop.ledger.write_bytes(first + canonical_json(entry) + b"\n")
    assert "chain_broken" in shop.ask("audit")[1]


def test_a_chain_copied_from_another_job_agrees_to_nothing(shop: Shop) -> None:
    other = add_job(shop.workspace, "Fail", criteria=["It works\n  check: run false"])
    shutil.copy(shop.ledger, shop.ledger.with_name(f"{other.id}.jsonl"))
    assert "chain_broken" in shop.ask("audit")[1]
    status, found = shop.ask("why", other.id)
    assert status == 1
    assert {"voided", "proposed", "unsealed"} & set(found)


def test_the_twin_of_a_writer_that_was_cut_off_is_a_warning_and_the_next_one_goes_on(shop: Shop) -> None:
    with shop.ledger.open("ab") as file:
        file.write(shop.lines()[-1][:40])
    assert shop.ask("audit") == (0, [])
    assert shop.ask("run", shop.id, "--again")[0] == 1
    assert len(shop.lines()) == 3
    assert shop.ask("audit") == (0, [])


# The whole chain written anew


def test_a_chain_written_anew_with_fitting_hashes_is_not_what_was_committed(shop: Shop) -> None:
    shop.forge(passing)
    assert shop.ask("audit") == (1, ["rewritten", "record_gone_back"])


def test_an_older_ledger_put_back_has_lost_what_was_committed(shop: Shop) -> None:
    shop.ledger.write_bytes(shop.lines()[0])
    assert "rewritten" in shop.ask("audit")[1]


def test_the_twin_that_only_goes_on_is_clean(shop: Shop) -> None:
    run_as_evidence(shop.workspace, shop.workspace.job(shop.id), ["true"], Actor("bot"))
    assert shop.ask("audit") == (0, [])
    shop.commit("more")
    assert shop.ask("audit") == (0, [])


@pytest.mark.parametrize("what", ["the folder", "the ledger", "one chain", "all to nothing"])
def test_a_ledger_that_was_deleted_is_missed_and_agrees_to_nothing(shop: Shop, what: str) -> None:
    match what:
        case "the folder":
            shutil.rmtree(shop.root / ".donewhen")
        case "the ledger":
            shutil.rmtree(shop.ledger.parent)
        case "one chain":
            shop.ledger.unlink()
        case _:
            shop.ledger.write_bytes(b"")
    assert "rewritten" in shop.ask("audit")[1]
    status, found = shop.ask("why", shop.id)
    assert status == 1
    assert {"unsealed", "proposed"} & set(found)


def test_a_ledger_that_was_deleted_before_any_commit_is_missed_too(
    tmp_path: Path, donewhen: Donewhen, git: Git
) -> None:
    """The plan files still say who agreed, which only donewhen writes."""
    git(tmp_path, "init", "-q")
    shop = Shop(tmp_path, donewhen, git)
    shutil.rmtree(tmp_path / ".git")
    shutil.rmtree(tmp_path / ".donewhen")
    assert shop.ask("audit")[0] == 1


def replaced(shop: Shop) -> None:
    committed = shop.git("rev-parse", f"HEAD:.donewhen/ledger/{shop.id}.jsonl").strip()
    shop.git("replace", committed, shop.git("hash-object", "-w", str(shop.ledger)).strip())


# What is done to the repository, and what to the environment; AWAY is a folder elsewhere.
GIT_TRICKS: dict[str, tuple[Callable[[Shop, Path], Any] | None, dict[str, str]]] = {
    "variables": (None, {"GIT_DIR": "AWAY", "GIT_WORK_TREE": "/", "GIT_CEILING_DIRECTORIES": "/"}),
    "objects elsewhere": (None, {"GIT_OBJECT_DIRECTORY": "AWAY", "GIT_INDEX_FILE": "AWAY/index"}),
    "configuration by variables": (
        None, {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"}),
    "a broken home": (lambda shop, away: (away / ".gitconfig").write_text("[core\n"), {"HOME": "AWAY"}),
    "a bare repository": (lambda shop, away: shop.git("config", "core.bare", "true"), {}),
    "another work tree": (lambda shop, away: shop.git("config", "core.worktree", str(shop.root.parent)), {}),
    "a broken configuration": (lambda shop, away: (shop.root / ".git" / "config").write_text("[core\n"), {}),
    "a replaced object": (lambda shop, away: replaced(shop), {}),
    "a program of the same name": (lambda shop, away: fake_git(away), {"PATH": f"AWAY/bin:{os.environ['PATH']}"}),
    "a program in what looks like an environment": (
        lambda shop, away: fake_git(shop.root / "env"), {"PATH": f"ROOT/env/bin:{os.environ['PATH']}"}),
}  # fmt: skip


def fake_git(above: Path) -> Path:
    (above / "bin").mkdir(parents=True)
    if above.name == "env":
        (above / "pyvenv.cfg").write_text("home = /usr/bin\n")
    program = above / "bin" / "git"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    return program.parent


@pytest.mark.parametrize(("trick", "environment"), GIT_TRICKS.values(), ids=list(GIT_TRICKS))
def test_git_can_not_be_made_to_forget_what_was_committed(
    shop: Shop, trick: Callable[[Shop, Path], Any] | None, environment: dict[str, str], tmp_path: Path
) -> None:
    """Either the forgery shows, or it shows that git could not be asked; never a clean audit."""
    away = tmp_path / "away"
    away.mkdir()
    shop.forge(passing)
    if trick is not None:
        trick(shop, away)
    placed = {
        name: text.replace("AWAY", str(away)).replace("ROOT", str(shop.root)) for name, text in environment.items()
    }
    assert shop.ask("audit", **placed)[0] == 1


def test_the_twin_in_a_clone_a_worktree_or_a_folder_of_a_repository_is_clean(
    shop: Shop, donewhen: Donewhen, git: Git, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{shop.root}", "clone")
    shop.git("worktree", "add", "-q", str(tmp_path / "tree"))
    for place in ("clone", "tree"):
        assert donewhen(["audit"], tmp_path / place).returncode == 0
    nested = shop.root / "nested"
    nested.mkdir()
    Shop(nested, donewhen, git)
    assert donewhen(["audit"], nested).returncode == 0


# Heads that are kept elsewhere


def test_a_forgery_that_was_committed_does_not_fit_its_anchor(shop: Shop) -> None:
    assert shop.ask("anchor") == (0, [])
    shop.forge(passing)
    shop.commit("nothing to see here")
    assert shop.ask("audit") == (1, ["anchor_mismatch", "record_gone_back"])


def test_a_forgery_can_not_be_anchored_in_place_of_the_truth(shop: Shop) -> None:
    shop.ask("anchor")
    shop.forge(passing)
    assert shop.ask("anchor")[0] != 0
    shop.commit("nothing to see here")
    assert shop.ask("audit") == (1, ["anchor_mismatch", "record_gone_back"])


@pytest.mark.parametrize("trick", ["other separators", "a graft", "a fold"])
def test_a_trailer_can_not_be_configured_away(shop: Shop, donewhen: Donewhen, trick: str) -> None:
    trailers = donewhen(["anchor", "--trailer"], shop.root).stdout
    shop.commit(f"anchored\n\n{trailers}")
    shop.forge(passing)
    shop.commit("nothing to see here")
    match trick:
        case "other separators":
            shop.git("config", "trailer.separators", "=")
        case "a graft":
            shop.git("replace", "--graft", "HEAD")
        case _:
            shop.git("config", "log.excludeDecoration", "*")
            shop.git("config", "log.showRoot", "false")
    assert shop.ask("audit") == (1, ["anchor_mismatch", "record_gone_back"])


def test_the_twin_that_grows_and_is_anchored_again_is_clean(shop: Shop) -> None:
    shop.ask("anchor")
    run_as_evidence(shop.workspace, shop.workspace.job(shop.id), ["true"], Actor("bot"))
    assert shop.ask("anchor") == (0, [])
    shop.commit("more")
    assert shop.ask("anchor") == (0, [])
    assert shop.ask("audit") == (0, [])


# What stands in the files instead


TYPED = {
    "status": ("\nstatus: planned\n", "\nstatus: done\n"),
    "cancelled": ("\nstatus: planned\n", "\nstatus: cancelled\n"),
    "completed_at": ('completed_at: ""', 'completed_at: "2026-02-14T10:00:00Z"'),
    "score": ("reward_last_score: 0", "reward_last_score: 100"),
    "truth": ("truth_last_status: unknown", "truth_last_status: pass"),
    "iteration": ("iteration: 0", "iteration: 2"),
    "agreed_by": ("agreed_by: ", "agreed_by: Ada, also "),
    "by a default": ("\nagreement_status: agreed\n", "\n"),
}


@pytest.mark.parametrize(("old", "new"), TYPED.values(), ids=list(TYPED))
def test_a_result_that_was_typed_in_is_tampered(shop: Shop, old: str, new: str) -> None:
    text = shop.plan.read_text()
    assert old in text
    shop.plan.write_text(text.replace(old, new, 1))
    assert shop.ask("audit") == (1, ["tampered"])
    assert shop.ask("status") == (1, ["tampered"])


def test_a_result_that_was_typed_in_before_anybody_agreed_is_not_taken_over(shop: Shop) -> None:
    job = add_job(shop.workspace, "Early", criteria=["It works"])
    text = job.path.read_text().replace("\nstatus: planned\n", "\nstatus: done\n")
    job.path.write_text(text.replace("truth_last_status: unknown", "truth_last_status: pass"))
    for proposal in agreement_proposals(shop.workspace, [shop.workspace.job(job.id)]):
        agree(shop.workspace, proposal, Approval(person_at_terminal()))
    assert shop.workspace.job(job.id).status != "done" or "tampered" in shop.ask("audit")[1]
    chain = shop.workspace.ledger.read(job.id).entries[0]
    assert {"done", "pass"}.isdisjoint(map(str, chain.data.get("adopted", {}).values()))


def test_the_twin_that_writes_what_is_for_people_is_not_tampered(shop: Shop) -> None:
    text = shop.plan.read_text().replace("priority: 2", "priority: 1").replace('due_date: ""', "due_date: 2026-12-24")
    shop.plan.write_text(text.replace("## Progress Log\n", "## Progress Log\n\n- status: done, soon\n"))
    assert shop.ask("audit") == (0, [])
    assert shop.ask("status") == (0, [])


def test_the_twin_that_had_begun_before_donewhen_came_is_not_tampered(shop: Shop) -> None:
    job = add_job(shop.workspace, "Under way", criteria=["It works\n  check: run true"])
    job.path.write_text(job.path.read_text().replace("\nstatus: planned\n", "\nstatus: in_progress\n"))
    assert shop.ask("run", job.id) == (0, [])
    assert "tampered" not in shop.ask("audit")[1] + shop.ask("status")[1]


# The index is for looking


def test_an_index_that_was_told_lies_changes_nothing_that_decides(shop: Shop) -> None:
    shop.plan.write_text(shop.plan.read_text().replace("reward_target: 80", "reward_target: 0"))
    shop.ask("status")
    with sqlite3.connect(shop.root / ".donewhen" / "index.sqlite") as index:
        rows = index.execute("select kind, sha, data from said").fetchall()
        assert rows
        for kind, sha, data in rows:
            lie = data.replace('"reward_target": 0', '"reward_target": 80').replace('"planned"', '"done"')
            index.execute("update said set data = ? where kind = ? and sha = ?", (lie, kind, sha))
    index.close()
    assert shop.ask("audit") == (1, ["voided"])
    assert "voided" in shop.ask("why", shop.id)[1]
    assert shop.ask("contract", "diff")[1] == ["voided"]


def test_the_twin_an_index_that_is_broken_or_gone_is_made_anew(shop: Shop) -> None:
    index = shop.root / ".donewhen" / "index.sqlite"
    before = shop.ask("status")
    index.write_bytes(b"no database, but long enough to look like one" * 100)
    assert shop.ask("status") == before == (0, [])
    for path in index.parent.glob("index.sqlite*"):
        path.unlink()
    assert shop.ask("status") == before
