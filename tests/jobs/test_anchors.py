"""Heads of the ledger that are kept elsewhere: in git notes and in trailers of commit messages."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Chain
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.record.anchors import NOTES, TRAILER, Anchor, AnchorError, anchor_lines, read_anchors, write_note
from sentences import assert_sentences

ME = Approval(Actor("me", "person"))
Git = Callable[..., str]
NOWHERE = "sha256:" + "0" * 64


@pytest.fixture
def shop(repository: Path, git: Git) -> Workspace:
    made = create_project(repository, "Shop")
    for proposal in agreement_proposals(made, [add_job(made, "One", criteria=["It works"])]):
        agree(made, proposal, ME)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "work")
    return made


def chains(workspace: Workspace) -> dict[str, Chain]:
    return {name: workspace.ledger.read(name) for name in workspace.ledger.chains()}


def codes(workspace: Workspace) -> list[tuple[str, str]]:
    """The findings, without what this machine remembers: who reads an anchor is on another one."""
    found = [(finding.severity, str(finding.code)) for finding in audit_workspace(workspace).findings]
    return [row for row in found if row[1] != "record_gone_back"]


def forge(workspace: Workspace, git: Git, name: str = "one") -> Path:
    """Write a chain anew, with other content, and commit it: nothing in it or in the tree shows that."""
    job = workspace.job(name)
    entries = workspace.ledger.read(job.id).entries
    path = workspace.folder / "ledger" / f"{job.id}.jsonl"
    path.unlink()
    anew = Ledger(path.parent, workspace.folder / "state" / "locks")
    for entry in entries:
        anew.append(job.id, entry.type, dict(entry.data) | {"notes": "forged"}, entry.by)
    git(workspace.root, "add", "-A")
    git(workspace.root, "commit", "-qm", "forged")
    return path


def test_a_head_is_a_line_that_names_chain_entry_and_hash(shop: Workspace) -> None:
    job = shop.job("one")
    decide(shop, job, Decision("split", "too large"), ME)
    entry = shop.ledger.read(job.id).entries[-1]
    assert f"{TRAILER}: {job.id} 2 {entry.hash}" in anchor_lines(chains(shop))
    assert [line.split()[1] for line in anchor_lines(chains(shop))] == sorted([job.id, shop.project().id])
    assert anchor_lines({"WI-1": Chain((), ())}) == ()


def test_without_an_anchor_a_chain_that_was_committed_anew_does_not_show(shop: Workspace, git: Git) -> None:
    forge(shop, git)
    assert codes(shop) == [("warning", "anchor_absent")]


def test_a_note_keeps_the_heads_and_is_read_again(shop: Workspace, git: Git) -> None:
    commit = write_note(shop, chains(shop))
    assert commit == git(shop.root, "rev-parse", "HEAD").strip()
    found = read_anchors(shop)
    assert {(anchor.chain, anchor.seq, anchor.hash) for anchor in found} == {
        (name, 1, chain.head) for name, chain in chains(shop).items()
    }
    assert {anchor.commit for anchor in found} == {commit}
    assert codes(shop) == []
    assert audit_workspace(shop).anchors == 2
    assert "Donewhen-Head" in git(shop.root, "notes", f"--ref={NOTES}", "show", "HEAD")


def test_a_note_finds_a_chain_that_was_written_anew(shop: Workspace, git: Git) -> None:
    write_note(shop, chains(shop))
    path = forge(shop, git)
    found = [finding for finding in audit_workspace(shop).findings if finding.code != "record_gone_back"]
    assert [(finding.severity, str(finding.code), finding.where) for finding in found] == [
        ("error", "anchor_mismatch", shop.where(path))
    ]
    assert shop.job("one").id in found[0].message


def test_a_chain_that_has_grown_since_still_fits_its_note(shop: Workspace, git: Git) -> None:
    write_note(shop, chains(shop))
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-qm", "more")
    assert codes(shop) == []


def test_a_chain_that_was_cut_short_or_is_gone_does_not_fit_its_note(shop: Workspace, git: Git) -> None:
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    write_note(shop, chains(shop))
    path = shop.folder / "ledger" / f"{shop.job('one').id}.jsonl"
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "--allow-empty", "-qm", "shorter")
    assert ("error", "anchor_mismatch") in codes(shop)
    path.unlink()
    git(shop.root, "add", "-A")
    git(shop.root, "commit", "-qm", "gone")
    assert ("error", "anchor_mismatch") in codes(shop)


def test_a_note_is_replaced_by_a_newer_one_on_the_same_commit(shop: Workspace) -> None:
    write_note(shop, chains(shop))
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    write_note(shop, chains(shop))
    assert sorted(anchor.seq for anchor in read_anchors(shop)) == [1, 2]


@pytest.mark.parametrize("how", ["option", "message"])
def test_trailers_of_a_commit_are_heads(shop: Workspace, git: Git, how: str) -> None:
    (shop.root / "more.txt").write_text("more")
    git(shop.root, "add", "-A")
    heads = anchor_lines(chains(shop))
    if how == "option":
        git(shop.root, "commit", "-qm", "more", *(f"--trailer={head}" for head in heads))
    else:
        git(shop.root, "commit", "-qm", "more\n\nSigned-off-by: Me <me@localhost>\n" + "\n".join(heads))
    assert {(anchor.chain, anchor.seq, anchor.hash) for anchor in read_anchors(shop)} == {
        (name, 1, chain.head) for name, chain in chains(shop).items()
    }
    assert codes(shop) == []
    forge(shop, git)
    assert codes(shop) == [("error", "anchor_mismatch")]


def test_what_merely_stands_in_a_message_is_no_trailer(shop: Workspace, git: Git) -> None:
    message = f"talk\n\n{TRAILER}: {shop.job('one').id} 1 {NOWHERE}\n\nand more prose after it, which ends it."
    git(shop.root, "commit", "--allow-empty", "-qm", message)
    assert codes(shop) == [("warning", "anchor_absent")]


def test_heads_in_commits_that_do_not_lead_here_say_nothing(shop: Workspace, git: Git) -> None:
    git(shop.root, "checkout", "-qb", "other")
    git(shop.root, "commit", "--allow-empty", "-qm", "x", f"--trailer={TRAILER}: {shop.job('one').id} 1 {NOWHERE}")
    assert codes(shop) == [("error", "anchor_mismatch")]
    git(shop.root, "checkout", "-q", "main")
    assert codes(shop) == [("warning", "anchor_absent")]


@pytest.mark.parametrize(
    "seq", ["0", "2", "000", "9" * 30, "9" * 5000], ids=["zero", "two", "zeros", "many", "endless"]
)
@pytest.mark.parametrize("chain", ["WI-20200101-001", "known"])
def test_a_head_that_no_chain_has_is_a_mismatch_and_does_not_end_the_audit(
    shop: Workspace, git: Git, seq: str, chain: str
) -> None:
    job = shop.job("one")
    name = job.id if chain == "known" else chain
    head = shop.ledger.read(job.id).head
    git(shop.root, "commit", "--allow-empty", "-qm", "x", f"--trailer={TRAILER}: {name} {seq} {head}")
    found = codes(shop)
    assert found in ([("error", "anchor_mismatch")], [("warning", "anchor_absent")])


def test_an_anchor_holds_while_the_chain_has_that_very_entry(shop: Workspace) -> None:
    decide(shop, shop.job("one"), Decision("split", "too large"), ME)
    entries = shop.ledger.read(shop.job("one").id).entries
    assert Anchor("x", 1, entries[0].hash, "c").holds(entries)
    assert Anchor("x", 2, entries[1].hash, "c").holds(entries)
    assert not Anchor("x", 1, entries[1].hash, "c").holds(entries)
    assert not Anchor("x", 3, entries[1].hash, "c").holds(entries)
    assert not Anchor("x", 1, entries[0].hash, "c").holds(())


def test_lines_of_a_note_that_are_no_heads_are_left_alone(shop: Workspace, git: Git) -> None:
    git(shop.root, "notes", f"--ref={NOTES}", "add", "-m", f"hello\n{TRAILER}: short 1 sha256:abc\n", "HEAD")
    assert read_anchors(shop) == ()


def test_other_notes_are_not_read(shop: Workspace, git: Git) -> None:
    git(shop.root, "notes", "add", "-m", f"{TRAILER}: {shop.job('one').id} 1 {NOWHERE}", "HEAD")
    assert read_anchors(shop) == ()


def test_a_note_needs_a_commit(tmp_path: Path, repository: Path) -> None:
    for folder in (tmp_path / "plain", repository):
        folder.mkdir(exist_ok=True)
        made = create_project(folder, "Shop")
        agree(made, agreement_proposals(made, [])[0], ME)
        with pytest.raises(AnchorError) as caught:
            write_note(made, chains(made))
        assert_sentences(caught.value)
        assert read_anchors(made) == ()


def test_a_note_that_git_does_not_take_is_an_error(shop: Workspace) -> None:
    (shop.root / ".git" / "refs" / "notes").write_text("in the way")
    with pytest.raises(AnchorError) as caught:
        write_note(shop, chains(shop))
    assert_sentences(caught.value)


def test_the_command_anchors_and_says_how_many(shop: Workspace, donewhen: Callable[..., Any]) -> None:
    done = donewhen(["anchor", "--json"], shop.root)
    answer = json.loads(done.stdout)
    assert (done.returncode, len(answer["data"]["heads"])) == (0, 2)
    assert answer["data"]["commit"] == read_anchors(shop)[0].commit


def test_the_command_prints_trailers_that_git_takes(
    shop: Workspace, git: Git, donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    printed = donewhen(["anchor", "--trailer"], shop.root).stdout.splitlines()
    assert len(printed) == 2
    git(shop.root, "commit", "--allow-empty", "-qm", "anchored", *(f"--trailer={line}" for line in printed))
    assert sorted(anchor.hash for anchor in read_anchors(shop)) == sorted(line.split()[-1] for line in printed)


def test_there_is_nothing_to_anchor_before_anything_happened(
    repository: Path, git: Git, donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    made = create_project(repository, "Shop")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "begun")
    with pytest.raises(AnchorError):
        write_note(made, chains(made))
    done = donewhen(["anchor"], repository)
    assert done.returncode != 0
    assert git(repository, "notes", f"--ref={NOTES}", "list") == ""


def test_a_clone_is_held_against_the_notes_once_they_are_fetched(shop: Workspace, tmp_path: Path, git: Git) -> None:
    write_note(shop, chains(shop))
    other = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(shop.root), str(other))
    cloned = find_workspace(other)
    assert codes(cloned) == [("warning", "anchor_absent")]
    git(other, "fetch", "-q", "origin", f"refs/notes/{NOTES}:refs/notes/{NOTES}")
    assert (codes(cloned), audit_workspace(cloned).anchors) == ([], 2)
    forge(cloned, git)
    assert codes(cloned) == [("error", "anchor_mismatch")]


def test_a_clone_without_history_is_held_against_nothing_and_says_so(shop: Workspace, tmp_path: Path, git: Git) -> None:
    write_note(shop, chains(shop))
    git(shop.root, "commit", "--allow-empty", "-qm", "later")
    other = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{shop.root}", str(other))
    assert codes(find_workspace(other)) == [("warning", "anchor_absent")]


def test_settings_of_git_do_not_hide_the_heads(shop: Workspace, git: Git) -> None:
    write_note(shop, chains(shop))
    for name, value in (("log.showSignature", "true"), ("color.ui", "always"), ("log.date", "relative")):
        git(shop.root, "config", name, value)
    assert codes(shop) == []
