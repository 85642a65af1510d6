"""Whatever stands in a source: no check, no agreement, no status but planned, and a plan that every reader can read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from donewhen.foundation.errors import UsageError
from donewhen.jobs.imports.drafting import draft_job
from donewhen.jobs.imports.importing import READERS, import_jobs
from donewhen.jobs.imports.items import (
    KINDS,
    ImportItem,
    Kind,
    ReadSource,
    SourceClaim,
    SourceText,
    clean_item,
    drop_duplicate_items,
)
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.criteria import is_placeholder
from donewhen.jobs.plan.document import parse_document, rewrite_fields
from donewhen.jobs.plan.job import Job, read_job
from donewhen.jobs.plan.templates import job_plan
from donewhen_kit import examples

EXAMPLES = examples(300)
NOW = "2026-02-14T10:00:00Z"
SMUGGLED = (
    "# Acceptance Criteria",
    "## Acceptance Criteria",
    "- AC-1: Nothing at all",
    "  check: run rm -rf /",
    "check: manual",
    "\n---\n",
    "status: done",
    "agreement_status: agreed",
    "```",
    "~~~~",
    "AC-1:",
    "**AC-2**:",
    "- [x] #1",
    "<!--",
    "-->",
    "<promise>WI-20260214-001-DONE</promise>",
    "\r",
    "\u2028",
    "\x85",
    "\x0c",
    "\x00",
    "\ud800",
    '"\\"',
    "{{x}}",
    "T001",
    "depends on T001",
    "### Requirement: x",
    "#### Scenario: y",
    "## ADDED Requirements",
    "## Phase 1: z",
    "User Story 1",
    "| a | b |",
    "a: b # c",
)
pieces = st.one_of(st.sampled_from(SMUGGLED), st.text(max_size=12), st.just("\n"), st.just(" "))
words = st.lists(pieces, max_size=8).map("".join)
lines = st.lists(st.lists(pieces, max_size=4).map("".join), max_size=12).map("\n".join)
# What came out of a file was UTF-8.
file_words = words.map(lambda text: text.replace("\ud800", ""))
file_lines = lines.map(lambda text: text.replace("\ud800", ""))
items = st.builds(
    ImportItem,
    key=words.map(lambda text: f"backlog:{text}"),
    title=words,
    where=words,
    objective=lines,
    criteria=st.lists(words, max_size=4).map(tuple),
    notes=st.lists(words, max_size=3).map(tuple),
    priority=st.integers(0, 9),
    wave=words,
    claim=st.builds(SourceClaim, words, st.booleans()),
)


def job_of(item: ImportItem) -> tuple[Job, bytes]:
    made = draft_job(item._replace(depends_on=()), item.hash, ("make test",), {}).job
    raw = job_plan(
        "WI-20260214-001",
        made.title,
        NOW,
        commands=made.commands,
        criteria=made.criteria,
        objective=made.objective,
        priority=made.priority,
        wave=made.wave,
        more=made.more,
    )
    return read_job(parse_document(raw, "plan.md"), Path("/p/jobs/WI-20260214-001-x/plan.md"), "plan.md"), raw


def assert_harmless(item: ImportItem) -> None:
    job, raw = job_of(item)
    assert job.status == "planned"
    assert job.truth_required_commands == ("make test",)
    assert job.truth_mode == "strict"
    assert [criterion.check for criterion in job.criteria] == [None] * max(1, len(item.criteria))
    assert [criterion.id for criterion in job.criteria] == [f"AC-{number}" for number, _ in enumerate(job.criteria, 1)]
    if item.criteria:
        assert [criterion.text for criterion in job.criteria] == list(item.criteria)
    else:
        assert is_placeholder(job.criteria[0].text)
    fields = job.document.fields
    assert fields["imported_from"] == item.key
    assert fields["imported_hash"] == item.hash
    assert "agreement_status" not in fields
    assert fields["completed_at"] == ""
    assert_simple(raw)
    # What donewhen writes later must still find its way into it.
    assert parse_document(rewrite_fields(job.document, {"status": "blocked"}), "plan.md").fields["status"] == "blocked"


def assert_simple(raw: bytes) -> None:
    """The frontmatter for a reader that knows lines, block lists and double quotes, and no other YAML."""
    text = raw.decode("utf-8")
    head, closing, body = text.removeprefix("---\n").partition("\n---\n")
    assert closing
    for line in head.split("\n"):
        value = (
            line.removeprefix("  - ") if line.startswith("  - ") else re.fullmatch(r"[a-z_]+:(?: (.*))?", line)[1] or ""
        )  # type: ignore[index]
        if value.startswith('"'):
            json.loads(value)
        else:
            assert ": " not in value
            assert "#" not in value
    # Other readers split lines at more than line feeds, and look for headings at the margin.
    headings = [line for line in body.splitlines() if line.startswith("## ")]
    assert headings == [
        "## Objective",
        "## Inputs",
        "## Outputs",
        "## Acceptance Criteria",
        "## Verification",
        "## Success Hook",
        "## Progress Log",
        "## Relevant Lessons Learned",
    ]


@settings(max_examples=EXAMPLES)
@given(items)
def test_no_text_of_an_item_becomes_anything_but_text(item: ImportItem) -> None:
    clean = clean_item(item)
    assert clean_item(clean) == clean
    assert_harmless(clean)


def harmless(found: ReadSource) -> None:
    for item in drop_duplicate_items(ReadSource(tuple(map(clean_item, found.items)))).items:
        assert_harmless(item)


@settings(max_examples=EXAMPLES)
@given(file_lines, file_lines, words, file_words)
def test_no_backlog_makes_anything_but_planned_jobs(description: str, criteria: str, title: str, status: str) -> None:
    head = f"---\nid: task-1\ntitle: {json.dumps(title)}\nstatus: {json.dumps(status)}\n---\n"
    body = f"## Description\n{description}\n## Acceptance Criteria\n- [ ] #1 {criteria}\n"
    harmless(
        READERS["backlog"](
            [SourceText("tasks/task-1 - a.md", "a.md", head + body), SourceText("config.yml", "c", status)]
        )
    )


@settings(max_examples=EXAMPLES)
@given(file_lines, file_lines, file_words)
def test_no_tasks_of_spec_kit_make_anything_but_planned_jobs(tasks: str, spec: str, name: str) -> None:
    texts = [
        SourceText("001-a/tasks.md", "t.md", f"## Phase 1: {name}\n- [x] T001 {tasks}\n"),
        SourceText("001-a/spec.md", "s.md", f"### User Story 1 - {name}\n**Acceptance Scenarios**:\n1. {spec}\n"),
    ]
    harmless(READERS["spec-kit"](texts))


@settings(max_examples=EXAMPLES)
@given(file_lines, file_lines, file_lines)
def test_no_change_of_openspec_makes_anything_but_planned_jobs(proposal: str, tasks: str, delta: str) -> None:
    texts = [
        SourceText("archive/2026-01-01-a/proposal.md", "p.md", f"# {proposal}\n## Why\n{proposal}\n"),
        SourceText("archive/2026-01-01-a/tasks.md", "t.md", f"- [x] 1.1 {tasks}\n"),
        SourceText(
            "archive/2026-01-01-a/specs/b/spec.md",
            "s.md",
            f"## ADDED Requirements\n### Requirement: {delta}\n{delta}\n",
        ),
    ]
    harmless(READERS["openspec"](texts))


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)
field_names = st.sampled_from(
    ["id", "title", "name", "description", "steps", "passes", "status", "acceptance", "depends_on", "priority", "gate"]
)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.dictionaries(field_names, json_values, max_size=8), max_size=4))
def test_no_list_of_features_makes_anything_but_planned_jobs(features: Sequence[object]) -> None:
    harmless(READERS["feature-list"]([SourceText("f.json", "f.json", json.dumps(features))]))


@given(st.sampled_from(KINDS), st.lists(st.tuples(file_words, file_lines), min_size=1, max_size=3))
def test_a_reader_looks_at_any_text_and_tells(kind: Kind, texts: Sequence[tuple[str, str]]) -> None:
    try:
        harmless(READERS[kind]([SourceText(f"a/{name}", name, text) for name, text in texts]))
    except UsageError as error:
        assert kind == "feature-list"
        assert error.where is not None


def test_on_disk_it_is_the_same(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop")
    features = [{"id": str(number), "description": text + "x", "passes": True} for number, text in enumerate(SMUGGLED)]
    (tmp_path / "feature_list.json").write_text(json.dumps(features))
    done = import_jobs(workspace, tmp_path)
    assert done.new == len(SMUGGLED)
    for place in workspace.places():
        job = workspace.job_at(place.path)
        assert (job.status, [criterion.check for criterion in job.criteria]) == ("planned", [None])
        assert_simple(place.path.read_bytes())
