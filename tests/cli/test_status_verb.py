"""Beginning, adding, and looking at all jobs: `donewhen init`, `add`, `status` and `log`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]


def envelope(done: subprocess.CompletedProcess[str], command: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told) == {"schema", "command", "ok", "data", "findings"}
    assert (told["schema"], told["command"], told["ok"]) == ("donewhen/v1", command, done.returncode == 0)
    assert all(set(one) == {"code", "message", "where", "next"} for one in told["findings"])
    return told


def codes(done: subprocess.CompletedProcess[str], command: str) -> list[str]:
    return [one["code"] for one in envelope(done, command)["findings"]]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    return add_job(shop, "Greet", criteria=["It says hello"])


def seal(shop: Workspace, *jobs: Job) -> None:
    for proposal in agreement_proposals(shop, jobs):
        agree(shop, proposal, Approval(person_at_terminal()))


@pytest.mark.parametrize("verb", ["init", "add", "status", "log"])
def test_they_explain_themselves(donewhen: Donewhen, tmp_path: Path, verb: str) -> None:
    shown = donewhen([verb, "-h"], tmp_path)
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: donewhen {verb}")
    assert "--json" in shown.stdout
    assert list(tmp_path.iterdir()) == []


# init


def test_init_makes_a_project_and_says_what_is_next(tmp_path: Path, donewhen: Donewhen) -> None:
    done = donewhen(["init", "--title", "Shop"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert_sentences(done.stdout)
    assert find_workspace(tmp_path).project().title == "Shop"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".donewhen", "jobs"]


def test_init_for_programs_names_the_project_its_root_and_its_form(tmp_path: Path, donewhen: Donewhen) -> None:
    told = envelope(
        donewhen(["-C", str(tmp_path), "init", "--workstreams", "--title", "Shop", "--json"], Path("/")), "init"
    )
    root = Path(told["data"]["root"])
    assert root.parent == tmp_path.resolve()
    assert told["data"]["form"] == "big"
    assert root.name == f"{told['data']['project']}-shop"
    assert find_workspace(root).project().id == told["data"]["project"]


def test_init_twice_is_refused_and_changes_nothing(shop: Workspace, donewhen: Donewhen) -> None:
    before = shop.project_file.read_bytes()
    done = donewhen(["init", "--title", "Other", "--json"], shop.root)
    assert (done.returncode, codes(done, "init")) == (2, ["usage"])
    assert shop.project_file.read_bytes() == before


@pytest.mark.parametrize("name", [".donewhen", "jobs"])
def test_init_where_a_file_is_in_the_way_names_it(tmp_path: Path, donewhen: Donewhen, name: str) -> None:
    (tmp_path / name).write_text("mine\n")
    done = donewhen(["init", "--title", "Shop", "--json"], tmp_path)
    told = envelope(done, "init")
    assert (done.returncode, told["findings"][0]["code"]) == (3, "io")
    assert name in told["findings"][0]["where"]
    assert (tmp_path / name).read_text() == "mine\n"


# add


def test_add_writes_everything_that_was_given(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    done = donewhen(
        [
            "add", "Log in", "--criterion", "A wrong password is refused :: run pytest -q", "--criterion", "It is kind",
            "--verify", "make test", "--output", "/login.py", "--depends-on", "001", "--stakes", "high", "--json",
        ],
        shop.root,
    )  # fmt: skip
    assert done.returncode == 0
    made = shop.job(envelope(done, "add")["data"]["job"])
    assert (made.id[-3:], made.title, made.stakes) == ("002", "Log in", "high")
    assert [(criterion.text, criterion.check and criterion.check.argv) for criterion in made.criteria] == [
        ("A wrong password is refused", ("pytest", "-q")),
        ("It is kind", None),
    ]
    assert (made.truth_required_commands, made.outputs, made.depends_on) == (("make test",), ("/login.py",), (job.id,))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], "usage", "Missing argument"),
        (["  "], "usage", "title"),
        (["x", "--verify", "a | b"], "usage", "'|'"),
        (["x", "--criterion", ":: run true"], "usage", "has no text"),
        (["x", "--criterion", "It works :: run a && b"], "config", "'&'"),
        (["x", "--criterion", "It works :: guess"], "config", "Unknown check"),
        (["x", "--depends-on", "009"], "usage", "009"),
        (["x", "--stakes", "enormous"], "usage", "enormous"),
        (["x", "--workstream", "web"], "usage", "no workstreams"),
    ],
    ids=["none", "blank", "shell", "no words", "shell in check", "check", "dependency", "stakes", "workstream"],
)
def test_add_refuses_what_can_not_be_meant_and_makes_nothing(
    shop: Workspace, donewhen: Donewhen, arguments: list[str], code: str, said: str
) -> None:
    done = donewhen(["add", "--json", *arguments], shop.root)
    assert (done.returncode, codes(done, "add")) == (2, [code])
    assert said in envelope(done, "add")["findings"][0]["message"]
    assert list(shop.places()) == []
    assert sorted(path.name for path in (shop.root / "jobs").iterdir()) == ["plan.md"]


def test_a_criterion_can_not_bring_more_lines_than_its_own(shop: Workspace, donewhen: Donewhen) -> None:
    text = "It works\n- AC-2: x\n\n## Notes\n:: run true\n- AC-3: y"
    done = donewhen(["add", "Job", "--criterion", text, "--json"], shop.root)
    made = shop.job(envelope(done, "add")["data"]["job"])
    assert len(made.criteria) == 1
    assert made.criteria[0].check is not None


# status


def test_status_lists_every_job_with_where_it_stands(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    other = add_job(shop, "Leave", depends_on=[job.id])
    done = donewhen(["status", "--json"], shop.root)
    data = envelope(done, "status")["data"]
    assert done.returncode == 0
    assert (data["project"], data["agreement"], data["counts"]) == (shop.project().id, "agreed", {"planned": 2})
    assert [(one["id"], one["title"], one["status"], one["events"]) for one in data["jobs"]] == [
        (job.id, "Greet", "planned", 1),
        (other.id, "Leave", "planned", 0),
    ]
    assert data["jobs"][0]["agreement"] == "agreed"
    assert data["jobs"][1]["depends_on"] == [job.id]
    shown = donewhen(["status"], shop.root).stdout
    assert f"{job.id}  ready           Greet  (next: donewhen start {job.id})" in shown
    assert shown.endswith("2 planned\n")


def test_status_says_the_same_from_below_and_from_elsewhere(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    asked = (
        (["status", "--json"], job.folder / "outputs"),
        (["-C", str(shop.root), "status", "--json"], Path("/")),
        (["status", "--project", str(shop.root), "--json"], Path("/")),
    )
    answers = [envelope(donewhen(arguments, folder), "status")["data"]["jobs"] for arguments, folder in asked]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0]["id"] == job.id


def test_status_of_a_project_without_jobs_is_no_failure(shop: Workspace, donewhen: Donewhen) -> None:
    done = donewhen(["status"], shop.root)
    assert done.returncode == 0
    assert_sentences(done.stdout)


def test_status_names_a_broken_plan_and_lists_the_others(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    broken = add_job(shop, "Broken")
    broken.path.write_text('---\ntitle: "open\n---\n')
    folder = add_job(shop, "Folder")
    folder.path.unlink()
    folder.path.mkdir()
    done = donewhen(["status", "--json"], shop.root)
    told = envelope(done, "status")
    assert done.returncode == 1
    assert [one["id"] for one in told["data"]["jobs"]] == [job.id]
    places = {one["where"].split(":")[0]: one["code"] for one in told["findings"]}
    assert places == {shop.where(broken.path): "document", shop.where(folder.path): "document"}
    assert f"✗ {shop.where(broken.path)}:" in donewhen(["status"], shop.root).stdout


def test_status_shows_what_was_typed_over_the_ledger(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    job.path.write_text(job.path.read_text().replace("\nstatus: planned\n", "\nstatus: done\n"))
    done = donewhen(["status", "--json"], shop.root)
    assert (done.returncode, codes(done, "status")) == (1, ["tampered"])
    assert envelope(done, "status")["data"]["jobs"][0]["tampered"] == ["status"]


def test_status_shortens_a_long_list_unless_asked_for_all(shop: Workspace, donewhen: Donewhen) -> None:
    for number in range(42):
        add_job(shop, f"Job {number}")
    shown = donewhen(["status"], shop.root).stdout
    assert_sentences(shown)
    assert "Job 41" not in shown
    assert "Job 41" in donewhen(["status", "--all"], shop.root).stdout
    assert len(envelope(donewhen(["status", "--json"], shop.root), "status")["data"]["jobs"]) == 42


@pytest.mark.parametrize("verb", ["status", "log"])
def test_a_title_can_neither_drive_the_terminal_nor_add_lines(
    shop: Workspace, job: Job, donewhen: Donewhen, verb: str
) -> None:
    title = r"\e]0;owned\a\e[2J\e[31mred \u202Edlrow\u202C\u200B [bold]loud[/bold] {0}\n  WI-1  done  agreed  Paid"
    job.path.write_text(job.path.read_text().replace("title: Greet", f'title: "{title}"'))
    hidden = {*AGENT_VARIABLES, "NO_COLOR"}
    colourful = {name: value for name, value in os.environ.items() if name not in hidden}
    seal(shop, shop.job(job.id))
    shown = donewhen([verb], shop.root, colourful).stdout
    assert not set("\x1b\x07\u202e\u202c\u200b") & set(shown)
    assert not any(line.strip().startswith("WI-1  done") for line in shown.splitlines())
    if verb == "status":
        assert "red dlrow [bold]loud[/bold] {0}" in shown


def test_status_reads_without_an_index_where_none_can_be_kept(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    (shop.folder / "index.sqlite").mkdir()
    done = donewhen(["status", "--json"], shop.root)
    assert done.returncode == 0
    assert [one["id"] for one in envelope(done, "status")["data"]["jobs"]] == [job.id]


def test_status_of_a_project_that_donewhen_never_wrote_to_writes_nothing(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    for path in sorted(shop.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    shop.folder.rmdir()
    assert donewhen(["status"], shop.root).returncode == 0
    assert not shop.folder.exists()


@pytest.mark.parametrize("verb", ["add", "status", "log"])
def test_without_a_project_they_say_how_to_begin(tmp_path: Path, donewhen: Donewhen, verb: str) -> None:
    done = donewhen([verb, "--json", *(["x"] if verb == "add" else [])], tmp_path)
    told = envelope(done, verb)
    assert (done.returncode, told["findings"][0]["code"]) == (2, "workspace")
    assert "donewhen init" in told["findings"][0]["next"]


def test_a_broken_configuration_or_project_file_is_named(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    (shop.root / "donewhen.toml").write_text("unknown = 1\n")
    done = donewhen(["status", "--json"], shop.root)
    assert (done.returncode, codes(done, "status")) == (2, ["config"])
    (shop.root / "donewhen.toml").unlink()
    shop.project_file.write_text("---\nid: [\n---\n")
    done = donewhen(["status", "--json"], shop.root)
    assert (done.returncode, codes(done, "status")) == (2, ["document"])


# log


def test_log_tells_what_happened_and_by_whose_word(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    run_as_evidence(shop, job, ["false"], Actor("bot"))
    shown = donewhen(["log", "001"], shop.root).stdout.splitlines()
    assert len(shown) == 2
    assert "#1 agreed" in shown[0]
    assert "(person)" in shown[0]
    assert "#2 ran" in shown[1]
    assert shown[1].endswith("bot (agent)  failed: false")
    rows = envelope(donewhen(["log", "--json"], shop.root), "log")["data"]
    assert rows["total"] == 3
    assert {one["chain"] for one in rows["entries"]} == {shop.project().id, job.id}
    assert {one["by"]["kind"] for one in rows["entries"]} == {"person", "agent"}


def test_log_shows_the_newest_and_says_how_many_are_older(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    for word in ("one", "two", "three"):
        run_as_evidence(shop, job, ["echo", word], Actor("bot"))
    shown = donewhen(["log", "001", "-n", "1"], shop.root).stdout
    assert "echo three" in shown
    assert "echo two" not in shown
    assert_sentences(shown)


def test_log_of_nothing_says_so_and_of_nobody_is_a_usage_error(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    assert_sentences(donewhen(["log", "001"], shop.root).stdout)
    done = donewhen(["log", "../../etc", "--json"], shop.root)
    assert (done.returncode, codes(done, "log")) == (2, ["usage"])


def test_log_remembers_a_job_whose_folder_is_gone(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    seal(shop, job)
    job.folder.rename(shop.root / "aside")
    assert "#1 agreed" in donewhen(["log", job.id], shop.root).stdout


def test_what_a_command_was_called_can_not_drive_the_terminal_in_the_log(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    run_as_evidence(
        shop, job, ["echo", "\x1b[2J\u202eevil\n2026-01-01T00:00:00Z  #9 completed"], Actor("\x1b[31mbot\n#8 agreed")
    )
    shown = donewhen(["log"], shop.root).stdout
    assert not set("\x1b\u202e") & set(shown)
    assert len(shown.splitlines()) == 1
