"""A completion says which gate decided: version, files and interpreter."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import donewhen
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Completed, GateProgram, decode_content
from donewhen.jobs.ledger.gate_program import this_gate
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace
from donewhen_kit import run_main

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
SOURCE = Path(donewhen.__file__).parent
HASH = """
import sys
sys.path.insert(0, sys.argv[1])
from donewhen.foundation.own_files import own_files_hash
print(own_files_hash())
"""


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path / "shop", "Shop")


def finished(shop: Workspace) -> tuple[str, str]:
    """The id and the promise of a job that is done."""
    job = add_job(shop, "Say yes", criteria=["It says yes.\n  check: file outputs/primary.md matches /yes/"])
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    assert start_job(shop, job.id, BOT).started
    (job.folder / "outputs" / "primary.md").write_text("yes\n")
    promise = complete(shop, job.id, BOT).promise
    assert promise is not None
    return job.id, promise.text


def hash_of(folder: Path) -> str:
    argv = [sys.executable, "-I", "-c", HASH, str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def copied(folder: Path) -> Path:
    """A copy of the package in which modules are still found."""
    shutil.copytree(SOURCE, folder / "donewhen", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_same_files_have_the_same_hash_wherever_they_are(tmp_path: Path) -> None:
    assert hash_of(copied(tmp_path / "here")) == this_gate().files
    (tmp_path / "here" / "donewhen" / "__pycache__").mkdir(exist_ok=True)
    (tmp_path / "here" / "donewhen" / "__pycache__" / "cli.cpython-311.pyc").write_bytes(b"compiled")
    assert hash_of(tmp_path / "here") == this_gate().files


@pytest.mark.parametrize("change", ["edited", "added", "removed", "renamed"])
def test_other_files_have_another_hash(tmp_path: Path, change: str) -> None:
    package = copied(tmp_path) / "donewhen"
    file = package / "dashboard" / "base.css"
    match change:
        case "edited":
            file.write_text(file.read_text() + " ")
        case "added":
            (package / "jobs" / "sly.py").write_text("")
        case "removed":
            file.unlink()
        case "renamed":
            file.rename(file.with_name("basis.css"))
    assert hash_of(tmp_path) != this_gate().files


def test_a_completion_names_the_gate_and_so_does_the_check_of_its_promise(shop: Workspace) -> None:
    job, promise = finished(shop)
    gate = GateProgram(donewhen.__version__, this_gate().files, platform.python_version())
    done = shop.ledger.read(job).entries[-1]
    assert done.read_as(Completed).gate == gate
    said = run_main(["promise", "verify", "--json", "--project", str(shop.root)], input=promise)
    assert json.loads(said.stdout)["data"]["gate"] == {
        "version": gate.version,
        "files": gate.files,
        "python": gate.python,
    }


def test_the_project_that_is_completed_with_its_last_job_names_it_too(shop: Workspace) -> None:
    finished(shop)
    done = [entry for entry in shop.ledger.read(shop.project().id).entries if entry.type == "completed"]
    assert [entry.read_as(Completed).gate for entry in done] == [this_gate()]


def test_a_completion_of_an_older_version_names_none_and_is_read() -> None:
    content = decode_content("completed", {"score": 100, "gates": {"truth": []}})
    assert isinstance(content, Completed)
    assert content.gate is None


def test_an_attestation_repeats_what_the_chain_says_about_the_gate(shop: Workspace, tmp_path: Path) -> None:
    job, _ = finished(shop)
    file = tmp_path / "receipt.json"
    assert run_main(["attest", job, "--out", str(file), "--project", str(shop.root)]).returncode == 0
    document = json.loads(file.read_text())
    assert document["predicate"]["gate"]["files"] == this_gate().files
    assert run_main(["attest", "verify", str(file)]).returncode == 3  # valid and unsigned
    document["predicate"]["gate"]["files"] = "sha256:" + "0" * 64
    file.write_text(json.dumps(document))
    assert run_main(["attest", "verify", str(file)]).returncode == 1
