"""The terms of an agreement about a job or project in canonical form, and the comparison of two versions of them.

They leave out insignificant details (ids of criteria, order, white space), so that the same agreement always has the
same hash.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from donewhen.config.project_hooks import HookFiles
from donewhen.config.settings import Settings
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.process import split_command
from donewhen.foundation.size_limits import SizeLimit
from donewhen.jobs.contract.terms_changes import ChangeKind as ChangeKind
from donewhen.jobs.contract.terms_changes import TermsChange as TermsChange
from donewhen.jobs.contract.terms_changes import compare_job_terms, compare_project_terms, replaced
from donewhen.jobs.ledger.evidence_levels import NeededLevel, level_rank
from donewhen.jobs.ledger.terms_content import (
    BaselineTerms,
    JobTerms,
    MirrorTerms,
    MissionTerms,
    ProjectTerms,
    SettingValue,
)
from donewhen.jobs.ledger.terms_content import Terms as Terms
from donewhen.jobs.plan.criteria import Criterion, parse_check
from donewhen.jobs.plan.job import Job, Project
from donewhen.test_reports.suite_baseline import SuiteBaseline

_CHECK_MARK = " [check: "


def job_terms(job: Job) -> JobTerms:
    """The terms of a job."""
    return JobTerms(
        job=job.id,
        criteria=_sorted(criterion_term(criterion) for criterion in job.criteria),
        outputs=_sorted(job.outputs),
        verification_evidence=_sorted(job.verification_evidence),
        inputs=_sorted(job.inputs),
        commands=_sorted(map(normal_command, job.truth_required_commands)),
        depends_on=_sorted(job.depends_on),
        stakes=job.stakes,
        reward_target=job.reward_target,
        max_iterations=job.max_iterations,
        truth_mode=job.truth_mode,
        truth_checks=_sorted(job.truth_checks),
        execution_log_required=job.execution_log_required,
        lesson_capture_required=job.lesson_capture_required,
        read_only=job.read_only,
        exemptions=dict(job.exemptions),
        work=UNSET if job.work is None else _sorted(job.work),
        present=_sorted(job.present) if job.present else UNSET,
        # In their order, which matters: one builds what the next needs.
        prepare=tuple(map(normal_command, job.prepare)) if job.prepare else UNSET,
        tests_may_change=_sorted(job.tests_may_change) if job.tests_may_change else UNSET,
        network="host" if job.network == "host" else UNSET,
        needs=_needed_levels(job.criteria),
    )


def project_terms(
    project: Project,
    settings: Settings,
    missions: Mapping[str, Path] | None = None,
    *,
    read: Callable[[Path, SizeLimit], bytes] = read_limited,
) -> ProjectTerms:
    """The terms of a project: its criteria, and the parsed settings, hooks and judges. ``missions`` are the folders of
    the judges' missions, by name; ``read`` reads a file."""
    files = HookFiles(settings.root, read=read)
    return ProjectTerms(
        project=project.id,
        criteria=_sorted(criterion_term(criterion) for criterion in project.criteria),
        settings=dict(_non_default_settings(settings)),
        hooks=_sorted(files.terms),
        hooks_switched_off=files.disabling is not None,
        baselines=_baselines(settings),
        # Turning it off would drop parity from every score; and another repository may have other readers.
        github=MirrorTerms(repo=project.github_repo) if project.github_enabled else UNSET,
        missions=_missions(missions) if missions else UNSET,
        needs=_needed_levels(project.criteria),
    )


def terms_hash(terms: Terms) -> str:
    """The hash that identifies an agreement."""
    return digest_of(msgspec.to_builtins(terms))


def compare_terms(before: Terms, after: Terms) -> tuple[TermsChange, ...]:
    """The differences between two versions of terms, field by field."""
    if isinstance(before, JobTerms) and isinstance(after, JobTerms):
        return tuple(compare_job_terms(before, after))
    if isinstance(before, ProjectTerms) and isinstance(after, ProjectTerms):
        return tuple(compare_project_terms(before, after, default_settings()))
    schemas = [str(terms.__struct_config__.tag) for terms in (before, after)]
    return tuple(replaced("schema", schemas[0], schemas[1]))


def normal_command(text: str) -> str:
    """A command without insignificant white space; a command that can't be run is returned unchanged."""
    try:
        return shlex.join(split_command(text))
    except DonewhenError:
        return text


def criterion_term(criterion: Criterion) -> str:
    """A criterion as written in the terms."""
    check = criterion.check
    if check is None:
        # Text that ends like a check must not be mistaken for a check.
        return f"{criterion.text} []" if criterion.text.endswith("]") else criterion.text
    return f"{criterion.text}{_CHECK_MARK}{check.normal}]"


def _needed_levels(criteria: Iterable[Criterion]) -> dict[str, NeededLevel] | UnsetType:
    """How strong the evidence has to be, by criterion. Of two with the same term, the stricter one counts."""
    levels: dict[str, NeededLevel] = {}
    for criterion in criteria:
        term = criterion_term(criterion)
        if criterion.needs is not None and level_rank(criterion.needs) > level_rank(levels.get(term)):
            levels[term] = criterion.needs
    return dict(sorted(levels.items())) or UNSET


def split_criterion_term(term: str) -> tuple[str, str | None]:
    """The text of a criterion as written in the terms, and its check, if it has one."""
    if term.endswith(" []"):
        return term.removesuffix(" []"), None
    end = len(term)
    while term.endswith("]") and (end := term.rfind(_CHECK_MARK, 0, end)) >= 0:
        check = term[end + len(_CHECK_MARK) : -1]
        # The last that can be read: a check may have brackets itself, and a text may look like a check.
        with suppress(DonewhenError):
            parse_check(check, "")
            return term[:end], check
    return term, None


def default_settings() -> dict[str, SettingValue]:
    """The default of each setting that has one, by its dotted name."""
    return dict(_settings(Settings(root=Path(), source=None), ""))


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _non_default_settings(settings: Settings) -> Iterator[tuple[str, SettingValue]]:
    """Each setting that differs from its default, by its dotted name."""
    defaults = default_settings()
    for name, value in _settings(settings, ""):
        if value != defaults.get(name):
            yield name, value


def _settings(table: Any, prefix: str) -> Iterator[tuple[str, SettingValue]]:
    for field in fields(table):
        value, name = getattr(table, field.name), f"{prefix}{field.name}"
        if not field.metadata.get("setting", True):
            continue
        if is_dataclass(value):
            yield from _settings(value, f"{name}.")
        elif value is not None:
            yield name, value


def _baselines(settings: Settings) -> dict[str, BaselineTerms]:
    baselines: dict[str, BaselineTerms] = {}
    for guard in (settings.stop, settings.subagent_stop, settings.task_completed):
        path = guard.tests.baseline if guard.tests is not None else None
        if path is not None and path not in baselines:
            try:
                baseline = SuiteBaseline.load(settings.root / path)
            except ConfigError:
                continue
            baselines[path] = BaselineTerms(
                executed=_short_hashes(baseline.executed), skipped=_short_hashes(baseline.skipped)
            )
    return baselines


def _missions(folders: Mapping[str, Path]) -> dict[str, MissionTerms]:
    # Imported late: a project without missions does not load the judging code.
    from donewhen.judging.mission_terms import mission_terms

    return {name: msgspec.convert(mission_terms(folder), MissionTerms) for name, folder in folders.items()}


def _short_hashes(ids: Iterable[str]) -> tuple[str, ...]:
    """Test ids as short hashes: a suite has thousands of tests, and the ledger stores them."""
    return _sorted(hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:12] for test in ids)
