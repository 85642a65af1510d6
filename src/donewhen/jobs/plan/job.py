"""Jobs and projects as typed values, read from their plan files."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.plain_text import one_line, shorten
from donewhen.jobs.ledger.entries import CHAIN_NAME
from donewhen.jobs.ledger.terms_content import Network as Network
from donewhen.jobs.ledger.terms_content import Stakes as Stakes
from donewhen.jobs.ledger.terms_content import TruthMode as TruthMode
from donewhen.jobs.plan.criteria import Criterion, MarkdownSection, find_section, read_criteria
from donewhen.jobs.plan.document import Document
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.ids import id_in

Status = Literal["planned", "in_progress", "blocked", "done", "cancelled"]

SCHEMA = "theworkshop.plan.v1"
"""The format of all plan files."""
STATUSES: tuple[Status, ...] = get_args(Status)
STAKES: tuple[Stakes, ...] = get_args(Stakes)
"""In ascending order."""
TARGETS: dict[Stakes, int] = {"low": 70, "normal": 80, "high": 90, "critical": 95}
MAX_SCORE = 100
BUDGETS: dict[Stakes, int] = {"low": 2, "normal": 3, "high": 5, "critical": 7}
TRUTH_CHECKS = (
    "exists_nonempty",
    "freshness",
    "work_item_execution_logged",
    "linked_lesson_captured",
    "required_command_logged",
    "verification_consistency",
)

T = TypeVar("T", bound=str)


class FieldError(DonewhenError):
    """A field of a plan file has an invalid value."""

    code = "field"
    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Job:
    """A job, as read from its plan file."""

    id: str
    title: str
    status: Status
    depends_on: tuple[str, ...]
    stakes: Stakes
    reward_target: int
    max_iterations: int
    iteration: int
    rework_count: int
    outputs: tuple[str, ...]
    verification_evidence: tuple[str, ...]
    inputs: tuple[str, ...]
    work: tuple[str, ...] | None
    """The work area: what may change besides the outputs. None if the plan does not say."""
    present: tuple[str, ...]
    """Files that git ignores and that checks need."""
    prepare: tuple[str, ...]
    """Commands that build what the checks need, before they run."""
    tests_may_change: tuple[str, ...]
    network: Network
    """``own`` if checks reach nothing but themselves, ``host`` if they have the network of the machine."""
    truth_mode: TruthMode
    truth_checks: tuple[str, ...]
    truth_required_commands: tuple[str, ...]
    execution_log_required: bool
    lesson_capture_required: bool
    exemptions: Mapping[str, str]
    read_only: bool
    """Whether the job is agreed to change nothing; otherwise a job with outputs has to change them."""
    criteria: tuple[Criterion, ...]
    completion_promise: str
    path: Path
    document: Document

    @property
    def folder(self) -> Path:
        return self.path.parent

    def line_of(self, field: str) -> int | None:
        """The line of a field in the plan file."""
        return self.document.line_of(field)


@dataclass(frozen=True)
class Project:
    """The project, as read from its plan file."""

    id: str
    title: str
    status: Status
    agreement_status: Literal["proposed", "agreed"]
    github_enabled: bool
    github_repo: str
    """``owner/name``; empty if the plan does not name one."""
    criteria: tuple[Criterion, ...]
    path: Path
    document: Document


def read_job(document: Document, path: Path, where: str) -> Job:
    """The job in a plan file; missing fields get the defaults of the format."""
    get = _Getter(document, where)
    stakes = get.choice("stakes", STAKES, "normal")
    identifier = get.text("work_item_id") or get.text("id")
    if not identifier:
        raise FieldError("The job has no work_item_id.", where=where)
    if not CHAIN_NAME.fullmatch(identifier):
        raise get.error(
            "work_item_id", f"is {identifier!r}; use only letters, digits, dots, dashes and underscores (at most 100)"
        )
    if id_in(identifier) == identifier and not identifier.startswith("WI-"):
        raise get.error("work_item_id", f"is {identifier!r}, which is the id of a project or workstream")
    return Job(
        id=identifier,
        title=get.text("title") or identifier,
        status=get.choice("status", STATUSES, "planned"),
        depends_on=get.texts("depends_on"),
        stakes=stakes,
        reward_target=get.number("reward_target", TARGETS[stakes], most=MAX_SCORE),
        max_iterations=get.number("max_iterations", BUDGETS[stakes]),
        iteration=get.number("iteration", 0),
        rework_count=get.number("rework_count", 0),
        outputs=get.texts("outputs", ("outputs/primary.md",)),
        verification_evidence=get.texts("verification_evidence", ("artifacts/verification.md",)),
        inputs=get.texts("inputs"),
        work=get.texts("work") if "work" in document.fields else None,
        present=get.texts("present"),
        prepare=get.texts("prepare"),
        tests_may_change=get.texts("tests_may_change"),
        network=get.choice("network", get_args(Network), "own"),
        truth_mode=get.choice("truth_mode", get_args(TruthMode), "strict"),
        truth_checks=_known_checks(get),
        truth_required_commands=get.texts("truth_required_commands"),
        execution_log_required=get.flag("execution_log_required", True),
        lesson_capture_required=get.flag("lesson_capture_required", True),
        exemptions={
            name: reason
            for name in ("execution_log_exemption_reason", "lesson_capture_exemption_reason")
            if (reason := get.text(name))
        },
        read_only=get.flag("read_only", False),
        criteria=read_criteria(_criteria_section(document), where),
        completion_promise=get.text("completion_promise") or f"{identifier}-DONE",
        path=path,
        document=document,
    )


def read_status(document: Document, where: str) -> Status:
    """The status in a plan file of any kind."""
    return _Getter(document, where).choice("status", STATUSES, "planned")


def unknown_format(document: Document, kind: str) -> str:
    """What is unknown about the format of a plan file that should be of this kind; empty if nothing is. A plan without
    the fields is of the kind of its place."""
    for name, known in (("schema", SCHEMA), ("kind", kind)):
        found = document.fields.get(name)
        if found is not None and found != "" and found != known:
            return f"{name} is {shorten(one_line(str(found)), 60)!r}, but donewhen knows only {known!r} here."
    return ""


def missing_fields(fields: Mapping[str, Value]) -> dict[str, Value]:
    """The required fields that a job's plan lacks, with their defaults."""
    if "work_item_id" not in fields:
        return {}
    stakes: Stakes = next((stakes for stakes in STAKES if stakes == fields.get("stakes")), "normal")
    defaults: dict[str, Value] = {
        "stakes": "normal",
        "reward_target": TARGETS[stakes],
        "max_iterations": BUDGETS[stakes],
        "iteration": 0,
        "rework_count": 0,
        "rework_reason": "",
        "reward_last_score": 0,
        "reward_last_eval_at": "",
        "reward_last_next_action": "",
    }
    return {name: value for name, value in defaults.items() if name not in fields}


def read_project(document: Document, path: Path, where: str) -> Project:
    """The project in a plan file."""
    get = _Getter(document, where)
    return Project(
        id=get.text("id") or path.parent.name,
        title=get.text("title") or path.parent.name,
        status=get.choice("status", STATUSES, "planned"),
        agreement_status=get.choice("agreement_status", ("proposed", "agreed"), "proposed"),
        github_enabled=get.flag("github_enabled", False),
        github_repo=get.text("github_repo"),
        criteria=read_criteria(_criteria_section(document), where),
        path=path,
        document=document,
    )


def with_status(project: Project, status: str) -> Project:
    """The project with the status of its record."""
    return replace(project, status=next((known for known in STATUSES if known == status), project.status))


def _criteria_section(document: Document) -> MarkdownSection | None:
    return find_section(document.body, "Acceptance Criteria", document.first_body_line)


def _known_checks(get: _Getter) -> tuple[str, ...]:
    names = get.texts("truth_checks", ("exists_nonempty", "freshness", "verification_consistency"))
    for name in names:
        if name not in TRUTH_CHECKS:
            raise get.error("truth_checks", f"has the unknown check {name!r}{_hint(name, TRUTH_CHECKS)}")
    return names


class _Getter:
    """Reads typed values from the frontmatter; an empty value counts as missing."""

    def __init__(self, document: Document, where: str) -> None:
        self._document = document
        self._where = where

    def text(self, name: str) -> str:
        value = self._raw(name)
        if value is None:
            return ""
        if isinstance(value, list | dict):
            raise self.error(name, "must be a single text value")
        if not isinstance(value, str) and (span := self._document.spans.get(name)) is not None:
            # 1.10 and true are text here: use what is written, not the value that YAML makes of it.
            return self._document.text[span.start : span.end].strip()
        return str(value).strip()

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        if name not in self._document.fields:
            return default
        value = self._raw(name)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or any(isinstance(item, list | dict) or item is None for item in value):
            raise self.error(name, "must be a list of strings")
        return tuple(str(item) for item in value)

    def number(self, name: str, default: int, *, most: int | None = None) -> int:
        value = self._raw(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0 or value < 0:
            raise self.error(name, f"must be a non-negative whole number, not {value!r}")
        if most is not None and value > most:
            raise self.error(name, f"must be at most {most}, not {value!r}")
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        value: Any = self._raw(name)
        if value is None:
            return default
        word = str(value).lower()
        if word not in ("true", "false", "yes", "no", "on", "off"):
            raise self.error(name, f"must be true or false, not {value!r}")
        return word in ("true", "yes", "on")

    def choice(self, name: str, known: tuple[T, ...], default: T) -> T:
        word = self.text(name)
        if not word:
            return default
        choice = next((value for value in known if value == word), None)
        if choice is None:
            raise self.error(name, f"has the unknown value {word!r}{_hint(word, known)}")
        return choice

    def error(self, name: str, problem: str) -> FieldError:
        line = self._document.line_of(name)
        stop = "" if problem.endswith("?") else "."
        return FieldError(f"{name} {problem}{stop}", where=f"{self._where}:{line}" if line else self._where)

    def _raw(self, name: str) -> Value:
        value = self._document.fields.get(name)
        return None if value == "" else value


def _hint(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(known)}"
