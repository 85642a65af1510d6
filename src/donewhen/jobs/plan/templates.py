"""The plan files of new projects, workstreams and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from donewhen.jobs.plan.document import render_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import BUDGETS, SCHEMA, TARGETS, Stakes

PLACEHOLDER = "[What must be true for this to be done? Replace this line.]"


def project_plan(identifier: str, title: str, now: str, *, level: int = 2) -> bytes:
    """The plan file of a new project. ``level`` is that of its headings."""
    fields: dict[str, Value] = {
        "schema": SCHEMA,
        "kind": "project",
        "id": identifier,
        "title": title,
        "status": "planned",
        "agreement_status": "proposed",
        "agreed_at": "",
        "agreed_notes": "",
        "started_at": now,
        "updated_at": now,
        "completed_at": "",
        "completion_promise": f"{identifier}-DONE",
        "github_enabled": False,
        "github_repo": "",
        "max_parallel_agents": 3,
        "waves": [],
        "workstreams": [],
    }
    headings = ("Goal", "Acceptance Criteria", "Workstreams", "Success Hook", "Progress Log", "Decisions")
    return _plan(title, fields, dict.fromkeys(headings, ""), level)


def workstream_plan(identifier: str, title: str, now: str) -> bytes:
    """The plan file of a new workstream."""
    fields: dict[str, Value] = {
        "schema": SCHEMA,
        "kind": "workstream",
        "id": identifier,
        "title": title,
        "status": "planned",
        "depends_on": [],
        "started_at": now,
        "updated_at": now,
        "completed_at": "",
        "completion_promise": f"{identifier}-DONE",
        "jobs": [],
    }
    headings = ("Purpose (How This Supports The Project Goal)", "Jobs", "Dependencies", "Success Hook", "Progress Log")
    return _plan(title, fields, dict.fromkeys(headings, ""), level=1)


def job_plan(
    identifier: str,
    title: str,
    now: str,
    *,
    stakes: Stakes = "normal",
    depends_on: Sequence[str] = (),
    outputs: Sequence[str] = ("outputs/primary.md",),
    inputs: Sequence[str] = (),
    work: Sequence[str] | None = None,
    commands: Sequence[str] = (),
    criteria: Sequence[str] = (),
    objective: str = "",
    priority: int = 2,
    wave: str = "",
    more: Mapping[str, Value] | None = None,
    level: int = 2,
) -> bytes:
    """The plan file of a new job: all fields of the format, plus ``more``. ``level`` is that of its headings."""
    fields: dict[str, Value] = {
        "schema": SCHEMA,
        "kind": "job",
        "work_item_id": identifier,
        "title": title,
        "status": "planned",
        "depends_on": list(depends_on),
        "wave_id": wave,
        "priority": priority,
        "estimate_hours": 1.0,
        "due_date": "",
        "stakes": stakes,
        "reward_target": TARGETS[stakes],
        "max_iterations": BUDGETS[stakes],
        "iteration": 0,
        "rework_count": 0,
        "rework_reason": "",
        "started_at": "",
        "updated_at": now,
        "completed_at": "",
        "completion_promise": f"{identifier}-DONE",
        "outputs": list(outputs),
        **({"inputs": list(inputs)} if inputs else {}),
        **({} if work is None else {"work": list(work)}),
        "verification_evidence": [],
        "reward_last_score": 0,
        "reward_last_eval_at": "",
        "reward_last_next_action": "",
        "truth_mode": "strict",
        "truth_checks": ["exists_nonempty", "freshness", "required_command_logged", "verification_consistency"],
        "truth_required_commands": list(commands),
        "truth_last_status": "unknown",
        "truth_last_checked_at": "",
        "truth_last_failures": [],
        "truth_input_snapshot": "artifacts/input-snapshot.json",
        "execution_log_required": True,
        "execution_log_exemption_reason": "",
        "lesson_capture_required": False,
        "lesson_capture_exemption_reason": "",
        "github_issue_number": "",
        "github_issue_url": "",
        "uat_last_status": "",
        "uat_open_issues": [],
        **(more or {}),
    }
    listed = "\n".join(f"- AC-{number}: {text}" for number, text in enumerate(criteria or (PLACEHOLDER,), 1))
    sections = {
        "Objective": objective,
        "Inputs": "",
        "Outputs": "",
        "Acceptance Criteria": listed,
        "Verification": "",
        "Success Hook": "",
        "Progress Log": "",
        "Relevant Lessons Learned": "",
    }
    return _plan(title, fields, sections, level)


def _plan(title: str, fields: Mapping[str, Value], sections: Mapping[str, str], level: int = 2) -> bytes:
    """The file. With ``level`` 1 it has no heading with the title: the original tool finds its sections by lines such
    as ``# Objective``."""
    mark = "#" * level
    texts = [f"{mark} {heading}\n" + (f"\n{text}\n" if text else "") for heading, text in sections.items()]
    body = "\n".join(texts if level == 1 else [f"# {title}\n", *texts])
    return f"---\n{render_fields(fields)}---\n\n{body}".encode()
