"""The original tool's files, both ways: a workspace of its kind is worked on to a promise, and read again as it reads.

The sample here has the shape of the original's sample project (a proposed project, one workstream, one job that
requires ``plan_check.py``). The reader follows the documented rules of the original's parser and its schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.board.views import dashboard_path, rebuild_views
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.gates.evidence_status import evidence_statuses, sign_off
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.own_commands import own_command
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.testing import ManualClock
from donewhen_kit import run_main

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
WI = "WI-20260214-001"
STREAM = "workstreams/WS-20260214-001-reading"
PROJECT = """---
schema: theworkshop.plan.v1
kind: project
id: PJ-20260214-001
title: "A reading list"
status: planned
agreement_status: proposed
agreed_at: ""
agreed_notes: ""
started_at: "2026-02-14T00:00:00Z"
updated_at: "2026-02-14T00:00:00Z"
completed_at: ""
completion_promise: "PJ-20260214-001-DONE"
github_enabled: false
github_repo: ""
subagent_policy: auto
max_parallel_agents: 3
waves:
  - id: WV-20260214-001
    title: "Wave 1: books"
    start: "2026-02-14"
    end: "2026-02-14"
workstreams:
  - WS-20260214-001
---

# Goal

A list of books that somebody can buy.

# Acceptance Criteria

- Each book on the list is in print.

# Workstreams

<!-- THEWORKSHOP:WORKSTREAM_TABLE_START -->
| Workstream | Status | Title | Depends On |
| --- | --- | --- | --- |
| WS-20260214-001 | planned | Reading |  |
<!-- THEWORKSHOP:WORKSTREAM_TABLE_END -->

# Success Hook

- Completion promise: `<promise>PJ-20260214-001-DONE</promise>`

# Progress Log

- 2026-02-14T00:00:00Z written down.

# Decisions

- None.
"""
WORKSTREAM = """---
schema: theworkshop.plan.v1
kind: workstream
id: WS-20260214-001
title: "Reading"
status: planned
depends_on: []
started_at: ""
updated_at: "2026-02-14T00:00:00Z"
completed_at: ""
completion_promise: "WS-20260214-001-DONE"
jobs:
  - WI-20260214-001
---

# Purpose (How This Supports The Project Goal)

The books are chosen here.

# Jobs

# Dependencies

# Success Hook

# Progress Log
"""
JOB = """---
schema: theworkshop.plan.v1
kind: job
work_item_id: WI-20260214-001
title: "Choose books"
status: planned
depends_on: []
wave_id: "WV-20260214-001"
priority: 2
estimate_hours: 1.0
due_date: ""
stakes: normal
reward_target: 80
max_iterations: 3
iteration: 0
rework_count: 0
rework_reason: ""
started_at: ""
updated_at: "2026-02-14T00:00:00Z"
completed_at: ""
completion_promise: "WI-20260214-001-DONE"
outputs:
  - "outputs/primary.md"
verification_evidence:
  - "artifacts/verification.md"
reward_last_score: 0
reward_last_eval_at: ""
reward_last_next_action: ""
truth_mode: strict
truth_checks:
  - exists_nonempty
  - freshness
  - verification_consistency
truth_required_commands:
  - plan_check.py
truth_last_status: unknown
truth_last_failures: []
truth_last_checked_at: ""
truth_input_snapshot: "artifacts/input-snapshot.json"
orchestration_mode: auto
parallel_group: ""
github_issue_number: ""
github_issue_url: ""
---

# Objective

Choose three books about bread, with their prices.

# Inputs

- the shop's catalogue

# Outputs

- `outputs/primary.md`

# Acceptance Criteria

- The list in `outputs/primary.md` has three books.
- Each book has a price from the shop's catalogue.

# Verification

- Compare each price with the catalogue, and note it in `artifacts/verification.md`.

# Success Hook

- Completion promise: `<promise>WI-20260214-001-DONE</promise>`

# Progress Log

- 2026-02-14T00:00:00Z written down.

# Relevant Lessons Learned

- (none yet)
"""


@pytest.fixture
def sample(tmp_path: Path) -> Workspace:
    root = tmp_path / "PJ-20260214-001-reading-list"
    for name, text in {
        "plan.md": PROJECT,
        f"{STREAM}/plan.md": WORKSTREAM,
        f"{STREAM}/jobs/{WI}-choose-books/plan.md": JOB,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return find_workspace(root)


def agreed(workspace: Workspace, name: str = WI) -> Job:
    for proposal in agreement_proposals(workspace, [workspace.job(name)]):
        agree(workspace, proposal, ADA)
    assert start_job(workspace, name, BOT).started
    return workspace.job(name)


def work(job: Job) -> None:
    for name, text in {
        "outputs/primary.md": "Rye, 12.00\nSourdough, 20.00\nCrust, 18.50\n",
        "artifacts/verification.md": "All three prices are those of the catalogue of May.\n",
    }.items():
        (job.folder / name).parent.mkdir(exist_ok=True)
        (job.folder / name).write_text(text)


def signed(workspace: Workspace, job: Job) -> None:
    for criterion in job.criteria:
        sign_off(workspace, job, criterion.id, "compared", ADA)


def finished(workspace: Workspace) -> Completion:
    job = agreed(workspace)
    work(job)
    signed(workspace, workspace.job(WI))
    return complete(workspace, WI, BOT)


# Their files here


def test_the_sample_is_read_with_all_of_its_headings(sample: Workspace) -> None:
    assert run_main(["plan-check"], sample.root).returncode == 0
    job = sample.job(WI)
    assert [criterion.text for criterion in job.criteria] == [
        "The list in `outputs/primary.md` has three books.",
        "Each book has a price from the shop's catalogue.",
    ]
    assert facts_of(sample, job).sections["objective"] == "Choose three books about bread, with their prices."
    lower = re.sub(r"^# ", "## ", job.path.read_text(), flags=re.MULTILINE)
    job.path.write_text(lower)
    again = sample.job(WI)
    assert [criterion.text for criterion in again.criteria] == [criterion.text for criterion in job.criteria]
    assert facts_of(sample, again).sections["verification"]


def test_the_sample_is_worked_on_to_a_promise(sample: Workspace) -> None:
    early = complete(sample, WI, BOT)
    assert not early.done
    result = finished(sample)
    assert result.evaluation is not None
    assert [reason.code for reason in result.evaluation.reasons] == []
    assert result.promise is not None
    assert result.promise.text.splitlines()[0] == f"<promise>{WI}-DONE</promise>"
    assert [promise.id for promise in result.cascade] == ["WS-20260214-001", "PJ-20260214-001"]
    assert run_main(["promise", "verify"], sample.root, input=result.promise.text).returncode == 0


def test_required_commands_of_the_tool_decide_no_criterion(sample: Workspace) -> None:
    job = agreed(sample)
    work(job)
    assert [requirement.check.kind for requirement in requirements_of(job)] == ["gate", "manual", "manual"]
    result = complete(sample, WI, BOT)
    assert not result.done
    assert {status.state for status in evidence_statuses(sample, sample.job(WI))[1:]} == {"needs_human"}


# Commands of the tool itself


OWN = (
    "plan_check.py",
    "scripts/plan_check.py",
    "python3 scripts/plan_check.py --project .",
    "python scripts/truth_eval.py --work-item-id WI-20260214-001 --no-sync",
    "/usr/bin/python3.12 /home/ann/.codex/skills/theworkshop/scripts/job_complete.py --work-item-id WI-20260214-001",
    "theworkshop plan-check --project .",
    "donewhen plan-check",
    "python3 -m donewhen reward-eval",
    "dashboard_build.py",
    "task_tracker_build.py",
)
OTHERS = (
    "pytest -q",
    "tools/plan_check.py",
    "./scripts/reward_eval.py --project .",
    "python3 ./scripts/plan_check.py",
    "bin/python3 scripts/plan_check.py",
    "python3 tools/scripts/plan_check.py",
    "python3 -m plan_check",
    "python3 -c plan_check.py",
    "plan_check",
    "scripts/test_plan_check.py",
    "donewhen",
    "theworkshop",
    "donewhen check",
    "python3",
    "",
    "'",
)


@pytest.mark.parametrize("command", OWN)
def test_commands_of_the_tool_are_answered_by_the_gates(command: str) -> None:
    assert own_command(command) is not None


@pytest.mark.parametrize("command", OTHERS)
def test_other_commands_are_run(command: str) -> None:
    assert own_command(command) is None


@pytest.mark.parametrize("command", ["plan_check.py", "python3 scripts/plan_check.py --project ."])
def test_a_script_of_the_project_with_the_tools_name_is_never_started(sample: Workspace, command: str) -> None:
    plan = sample.job(WI).path
    plan.write_text(plan.read_text().replace("  - plan_check.py", f"  - {command}"))
    for name in ("plan_check.py", "scripts/plan_check.py"):
        (sample.root / name).parent.mkdir(exist_ok=True)
        (sample.root / name).write_text("#!/usr/bin/env python3\nopen('started', 'w')\n")
        (sample.root / name).chmod(0o755)
    result = finished(sample)
    assert result.done
    assert not list(sample.root.rglob("started"))
    assert [entry.type for entry in sample.ledger.read(WI).entries if entry.type == "ran"] == []


def test_the_gates_answer_does_not_hide_what_the_check_would_find(sample: Workspace) -> None:
    job = agreed(sample)
    work(job)
    signed(sample, sample.job(WI))
    text = job.path.read_text()
    job.path.write_text(text.replace("reward_last_score: 0", "reward_last_score: 99"))
    result = complete(sample, WI, BOT)
    assert not result.done
    assert result.evaluation is not None
    assert "record_tampered" in [reason.code for reason in result.evaluation.reasons]


def test_a_command_of_the_project_covers_the_criteria_beside_one_of_the_tool(sample: Workspace) -> None:
    plan = sample.job(WI).path
    plan.write_text(plan.read_text().replace("  - plan_check.py", "  - plan_check.py\n  - grep -rq Rye ."))
    kinds = [requirement.check.kind for requirement in requirements_of(sample.job(WI))]
    assert kinds == ["gate", "run", "verification", "verification"]
    work(agreed(sample))
    assert complete(sample, WI, BOT).done


def test_a_first_command_beside_one_of_the_tool_loosens_what_a_person_decides(sample: Workspace) -> None:
    agreed(sample)
    plan = sample.job(WI).path
    plan.write_text(plan.read_text().replace("  - plan_check.py", "  - plan_check.py\n  - 'true'"))
    (proposal,) = [found for found in agreement_proposals(sample, [sample.job(WI)]) if found.chain == WI]
    assert proposal.agreement.state == "voided"
    assert ("loosened", "criteria") in {(change.kind, change.field) for change in proposal.agreement.changes}


def test_a_job_with_a_command_of_the_tool_can_be_attested(sample: Workspace) -> None:
    finished(sample)
    made = run_main(["--json", "attest", WI], sample.root)
    assert made.returncode == 0, made.stderr


# The scripts' flags


FLAGS = {
    "reward-eval": (["--no-sync"], ["--no-dashboard"], ["--out-json", "x.json"], ["--out-md", "x.md"]),
    "truth-eval": (["--no-sync"], ["--no-dashboard"]),
    "plan-check": (["--strict"],),
    "job-complete": (["--cascade"], ["--no-sync"], ["--no-dashboard"], ["--no-open"]),
}
CASES = [(script, flags) for script, cases in FLAGS.items() for flags in cases]


@pytest.mark.parametrize(("script", "flags"), CASES)
def test_the_flags_of_the_original_are_accepted_and_named_as_ignored(
    sample: Workspace, script: str, flags: list[str]
) -> None:
    job = [] if script == "plan-check" else ["--work-item-id", WI]
    plain = run_main([script, *job, "--project", str(sample.root)], sample.root)
    result = run_main([script, *job, "--project", str(sample.root), *flags], sample.root)
    assert result.returncode == plain.returncode
    assert f"{flags[0]} is ignored: " in result.stderr
    assert not list(sample.root.glob("x.*"))


@pytest.mark.parametrize("script", FLAGS)
def test_every_flag_of_a_script_is_in_the_reference(script: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference-job-files.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith(f"| `{script}` |")]
    assert [flags[0] for flags in FLAGS[script] if f"`{flags[0]}`" not in line] == []


@pytest.mark.parametrize("arguments", [["reward", WI, "--no-sync"], ["complete", WI, "--cascade"]])
def test_they_belong_to_the_scripts_alone(sample: Workspace, arguments: list[str]) -> None:
    assert run_main(arguments, sample.root).returncode == 2


def test_all_flags_together_leave_the_answer_as_it_is(sample: Workspace) -> None:
    flags = [word for case in FLAGS["job-complete"] for word in case]
    work(agreed(sample))
    signed(sample, sample.job(WI))
    result = run_main(["--json", "job-complete", "--work-item-id", WI, *flags], sample.root)
    assert result.returncode == 0
    assert json.loads(result.stdout)["data"]["cascade"] == ["WS-20260214-001", "PJ-20260214-001"]


# What donewhen wrote, there


SCALARS = {"": "", "[]": [], "{}": {}, "null": None, "~": None, "true": True, "false": False}


def scalar(text: str) -> Any:
    """A value on one line, by the original's rules: no escapes but for quotes and backslashes, no comments."""
    if text in SCALARS:
        return SCALARS[text]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d+", text):
        return float(text)
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r'\\(["\\])', r"\1", text[1:-1])
    assert text[0] not in "'|>&*[{!", f"the original does not read {text!r}"
    return text


def fields_there(lines: Sequence[str], indent: int = 0) -> dict[str, Any]:
    """The fields of a plan, read with the documented restrictions: block lists and mappings, one line a value."""
    fields: dict[str, Any] = {}
    name = ""
    for line in lines:
        text, depth = line[indent:], len(line) - len(line.lstrip(" ")) - indent
        if depth == 0:
            match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_-]*):(?: (.*))?", text)
            assert match, f"not a field: {line!r}"
            name = match[1]
            fields[name] = [] if match[2] is None else scalar(match[2].strip())
        elif text.startswith("  - "):
            assert isinstance(fields[name], list)
            item = re.fullmatch(r"([a-z_]+): (.*)", text[4:])
            fields[name].append({item[1]: scalar(item[2])} if item else scalar(text[4:]))
        else:
            key, _, value = text.strip().partition(": ")
            fields[name][-1][key] = scalar(value)
    return fields


def plan_there(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The fields and the sections of a plan file. A section begins at a line such as ``# Objective``."""
    text = path.read_text()
    assert text.startswith("---\n")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    parts = re.split(r"^# (.*)$", body, flags=re.MULTILINE)
    return fields_there(head.splitlines()), {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}  # noqa: B905


PROJECT_HEADINGS = ["Goal", "Acceptance Criteria", "Workstreams", "Success Hook", "Progress Log", "Decisions"]
STREAM_HEADINGS = [
    "Purpose (How This Supports The Project Goal)",
    "Jobs",
    "Dependencies",
    "Success Hook",
    "Progress Log",
]
JOB_HEADINGS = [
    "Objective",
    "Inputs",
    "Outputs",
    "Acceptance Criteria",
    "Verification",
    "Success Hook",
    "Progress Log",
    "Relevant Lessons Learned",
]


def read_there(root: Path) -> dict[str, dict[str, Any]]:
    """Every plan of a project as the original reads it, with what its own check asks of each."""
    plans = {}
    for path in [root / "plan.md", *root.glob("workstreams/WS-*/plan.md"), *root.glob("workstreams/*/jobs/*/plan.md")]:
        fields, sections = plan_there(path)
        kind = fields["kind"]
        headings = {"project": PROJECT_HEADINGS, "workstream": STREAM_HEADINGS, "job": JOB_HEADINGS}[kind]
        assert fields["schema"] == "theworkshop.plan.v1"
        assert [name for name in headings if name not in sections] == []
        name = fields["work_item_id" if kind == "job" else "id"]
        assert path.parent.name.startswith(name)
        assert fields["completion_promise"] == f"{name}-DONE"
        plans[name] = fields | {"sections": sections, "folder": path.parent}
    return plans


def test_the_finished_sample_reads_as_done_there(sample: Workspace) -> None:
    finished(sample)
    plans = read_there(sample.root)
    # That of the project and its workstreams is in the record and on the dashboard: branches share their plans.
    assert plans[WI]["status"] == "done"
    shown = json.loads(dashboard_path(sample).read_text())
    assert (shown["project"]["status"], shown["workstreams"][0]["status"]) == ("done", "done")
    project, job = plans["PJ-20260214-001"], plans[WI]
    assert project["agreement_status"] == "agreed"
    assert project["waves"][0]["title"] == "Wave 1: books"
    assert project["subagent_policy"] == "auto"
    assert job["reward_last_score"] >= job["reward_target"]
    assert job["truth_last_status"] == "pass"
    assert job["truth_last_failures"] == []
    assert job["iteration"] <= job["max_iterations"]
    assert all((job["completed_at"], job["reward_last_eval_at"], project["started_at"], project["updated_at"]))
    for path in (*job["outputs"], *job["verification_evidence"]):
        assert (job["folder"] / path).stat().st_size > 0
    assert job["sections"]["Objective"] == "Choose three books about bread, with their prices."


def test_a_project_made_here_reads_there(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Books: a list", form="big")
    job = add_job(made, 'The "first" job', workstream="Reading", criteria=["There is a list.\n  check: manual"])
    plans = read_there(made.root)
    assert [fields["title"] for fields in plans.values()] == ["Books: a list", "Reading", 'The "first" job']
    stream = next(fields for fields in plans.values() if fields["kind"] == "workstream")
    assert plans[job.id]["folder"].parents[1] == stream["folder"]
    assert plans[job.id]["sections"]["Acceptance Criteria"].startswith("- AC-1: There is a list.")


def board(workspace: Workspace) -> dict[str, Any]:
    return json.loads(dashboard_path(workspace).read_text())


def test_the_dashboard_has_what_the_originals_schema_requires(sample: Workspace) -> None:
    finished(sample)
    shown = board(sample)
    assert isinstance(shown["schema"], str)
    assert shown["generated_at"] == max(event["at"] for event in shown["events"])
    assert (shown["project"]["id"], shown["project"]["status"]) == ("PJ-20260214-001", "done")
    statuses = {"planned": 0, "in_progress": 0, "blocked": 0, "done": 1, "cancelled": 0}
    assert shown["stats"] == {"workstreams_total": 1, "jobs_total": 1, "jobs_status": statuses}
    assert shown["tokens"]["cost_source"] == "none"
    (stream,) = shown["workstreams"]
    assert (stream["id"], stream["title"], stream["status"]) == ("WS-20260214-001", "Reading", "done")
    (item,) = stream["jobs"]
    assert (item["work_item_id"], item["status"], item["truth_status"]) == (WI, "done", "pass")
    assert item["reward_score"] >= item["reward_target"] == 80


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["planned", "planned"], "planned"),
        (["planned", "done"], "in_progress"),
        (["planned", "blocked"], "in_progress"),
        (["done", "cancelled"], "done"),
        (["cancelled", "cancelled"], "cancelled"),
        (["planned", "cancelled"], "planned"),
    ],
)
def test_the_status_of_a_workstream_on_the_dashboard_follows_its_jobs(
    tmp_path: Path, statuses: list[str], expected: str
) -> None:
    made = create_project(tmp_path, "Books", form="big")
    for number, status in enumerate(statuses):
        path = add_job(made, f"Job {number}", workstream="Reading", criteria=["x"]).path
        path.write_text(path.read_text().replace("status: planned", f"status: {status}", 1))
    rebuild_views(made)
    assert [stream["status"] for stream in board(made)["workstreams"]] == [expected]


def test_the_small_form_has_one_group_under_the_projects_name(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Books")
    add_job(made, "Job", criteria=["x"])
    rebuild_views(made)
    shown = board(made)
    assert [(stream["id"], stream["title"]) for stream in shown["workstreams"]] == [(made.project().id, "Books")]


def test_a_dashboard_that_is_written_again_later_is_the_same_file(sample: Workspace) -> None:
    agreed(sample)
    evaluate_and_record(sample, WI, BOT, collecting=False)
    paths = [dashboard_path(sample, suffix) for suffix in ("json", "html")]
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in paths]
    years_later = Workspace(sample.root, sample.form, ManualClock())
    years_later.clock.advance(1e9)  # type: ignore[attr-defined]
    rebuild_views(years_later)
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in paths] == before
    assert facts_of(years_later, sample.job(WI)).views.dashboard
