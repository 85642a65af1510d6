"""The terms of an agreement about a job or project in canonical form, and the comparison of two versions of them.

Terms are plain JSON values. They leave out insignificant details (ids of criteria, order, white space), so that the
same agreement always has the same hash.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from donewhen.config.project_hooks import HookFiles
from donewhen.config.settings import Settings
from donewhen.foundation.canonical import canonical_json, digest_of
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.process import split_command
from donewhen.jobs.plan.criteria import Criterion
from donewhen.jobs.plan.job import STAKES, Job, Project
from donewhen.test_reports.suite_baseline import SuiteBaseline

Terms: TypeAlias = Mapping[str, Any]
ChangeKind = Literal["added", "tightened", "loosened", "removed"]

JOB_TERMS = "donewhen/job-contract/v1"
PROJECT_TERMS = "donewhen/project-contract/v1"
_VOIDING: frozenset[ChangeKind] = frozenset({"loosened", "removed"})


class TermsChange(NamedTuple):
    """A difference between the agreed terms and the current ones."""

    kind: ChangeKind
    field: str
    before: str | None
    after: str | None

    @property
    def voids(self) -> bool:
        """Whether this change voids the agreement."""
        return self.kind in _VOIDING


def job_terms(job: Job) -> Terms:
    """The terms of a job."""
    return {
        "schema": JOB_TERMS,
        "job": job.id,
        "criteria": _sorted({criterion_term(criterion) for criterion in job.criteria}),
        "outputs": _sorted(job.outputs),
        "verification_evidence": _sorted(job.verification_evidence),
        "inputs": _sorted(job.inputs),
        "commands": _sorted(map(normal_command, job.truth_required_commands)),
        "depends_on": _sorted(job.depends_on),
        "stakes": job.stakes,
        "reward_target": job.reward_target,
        "max_iterations": job.max_iterations,
        "truth_mode": job.truth_mode,
        "truth_checks": _sorted(job.truth_checks),
        "execution_log_required": job.execution_log_required,
        "lesson_capture_required": job.lesson_capture_required,
        "read_only": job.read_only,
        "exemptions": dict(job.exemptions),
    }


def project_terms(
    project: Project,
    settings: Settings,
    missions: Mapping[str, Path] | None = None,
    *,
    read: Callable[[Path], bytes] = Path.read_bytes,
) -> Terms:
    """The terms of a project: its criteria, and the parsed settings, hooks and judges. ``missions`` are the folders of
    the judges' missions, by name; ``read`` reads a file."""
    files = HookFiles(settings.root, read=read)
    terms = {
        "schema": PROJECT_TERMS,
        "project": project.id,
        "criteria": _sorted({criterion_term(criterion) for criterion in project.criteria}),
        "settings": dict(_non_default_settings(settings, "")),
        "hooks": _sorted(
            f"{hook.file}: {hook.event}{f' ({hook.matcher})' if hook.matcher else ''}: "
            f"{hook.command} [{hook.timeout} s]"
            for hook in files.hooks
        ),
        "hooks_switched_off": files.disabling is not None,
        "baselines": _baselines(settings),
    }
    if project.github_enabled:
        # Turning it off would drop parity from every score; and another repository may have other readers.
        terms["github"] = {"repo": project.github_repo}
    return {**terms, "missions": _missions(missions)} if missions else terms


def terms_hash(terms: Terms) -> str:
    """The hash that identifies an agreement."""
    return digest_of(terms)


def compare_terms(before: Terms, after: Terms) -> tuple[TermsChange, ...]:
    """The differences between two versions of terms, field by field."""
    changes: list[TermsChange] = []
    for name in sorted({*before, *after}):
        if name == "settings":
            for setting in sorted({*before[name], *after[name]}):
                rule = _SETTINGS.get(setting.rpartition(".")[2], _compare_replaced)
                default = _defaults().get(setting)
                old, new = before[name].get(setting, default), after[name].get(setting, default)
                changes += rule(f"settings.{setting}", old, new)
        else:
            changes += _RULES.get(name, _compare_replaced)(name, before.get(name), after.get(name))
    return (*changes, *_manual_criteria_loosened(before, after))


def _manual_criteria_loosened(before: Terms, after: Terms) -> Iterator[TermsChange]:
    """A person decides criteria without a check; once there are commands, the commands decide them instead."""
    if not before.get("commands") and after.get("commands"):
        for term in before.get("criteria") or ():
            if term in (after.get("criteria") or ()) and (not term.endswith("]") or term.endswith(" []")):
                yield TermsChange("loosened", "criteria", f"{term} (a person decides)", f"{term} (the commands decide)")


def have_same_shape(before: Terms, after: Terms) -> bool:
    """Whether the terms have the same fields, each with a value of the same type."""
    # Optional fields: a project may have been agreed before it had missions or a mirror.
    names = {*before, *after} - {"missions", "github"}
    missions = [terms.get("missions", {}) for terms in (before, after)]
    return (
        names <= set(before)
        and names <= set(after)
        and all(_has_same_type(name, before[name], after[name]) for name in names)
        and all(
            isinstance(table, dict) and all(isinstance(term, dict) for term in table.values()) for table in missions
        )
        and all(isinstance(terms.get("github", {}), dict) for terms in (before, after))
    )


def _has_same_type(name: str, before: Any, after: Any) -> bool:
    if type(before) is not type(after) or (name == "stakes" and after not in STAKES):
        return False
    if name == "truth_mode":
        return after in ("off", "strict")
    if isinstance(after, list):
        return all(isinstance(item, str) for item in after)
    if name == "baselines":
        return all(isinstance(item, dict) and set(item) == {"executed", "skipped"} for item in after.values())
    if name == "exemptions":
        return all(isinstance(item, str) for item in after.values())
    return True


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
    return f"{criterion.text} [check: {check.normal}]"


def _sorted(values: Iterable[str]) -> list[str]:
    return sorted(set(values))


def _non_default_settings(table: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Each setting that differs from its default, by its dotted name."""
    defaults = _defaults()
    for name, value in _settings(table, prefix):
        if value != defaults.get(name):
            yield name, value


def _settings(table: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for field in fields(table):
        value, name = getattr(table, field.name), f"{prefix}{field.name}"
        if not field.metadata.get("setting", True):
            continue
        if is_dataclass(value):
            yield from _settings(value, f"{name}.")
        elif value is not None:
            yield name, list(value) if isinstance(value, tuple) else value


def _defaults() -> dict[str, Any]:
    return dict(_settings(Settings(root=Path(), source=None), ""))


def _baselines(settings: Settings) -> dict[str, Any]:
    baselines: dict[str, Any] = {}
    for guard in (settings.stop, settings.subagent_stop, settings.task_completed):
        path = guard.tests.baseline if guard.tests is not None else None
        if path is not None and path not in baselines:
            try:
                baseline = SuiteBaseline.load(settings.root / path)
            except ConfigError:
                continue
            baselines[path] = {"executed": _short_hashes(baseline.executed), "skipped": _short_hashes(baseline.skipped)}
    return baselines


def _missions(folders: Mapping[str, Path]) -> dict[str, Any]:
    # Imported late: a project without missions does not load the judging code.
    from donewhen.judging.mission_terms import mission_terms

    return {name: mission_terms(folder) for name, folder in folders.items()}


def _short_hashes(ids: Iterable[str]) -> list[str]:
    """Test ids as short hashes: a suite has thousands of tests, and the ledger stores them."""
    return sorted({hashlib.sha256(test.encode("utf-8", "surrogatepass")).hexdigest()[:12] for test in ids})


Rule: TypeAlias = Callable[[str, Any, Any], "list[TermsChange]"]


def _compare_replaced(name: str, before: Any, after: Any) -> list[TermsChange]:
    """Values without an order: the old value counts as removed, the new one as added."""
    if canonical_json(before) == canonical_json(after):
        return []
    removed = [] if before in (None, [], {}) else [TermsChange("removed", name, _as_text(before), None)]
    return removed + ([] if after in (None, [], {}) else [TermsChange("added", name, None, _as_text(after))])


def _compare_items(name: str, before: Any, after: Any) -> list[TermsChange]:
    """Lists in which more items are stricter."""
    old, new = before or [], after or []
    return [TermsChange("removed", name, item, None) for item in old if item not in new] + [
        TermsChange("added", name, None, item) for item in new if item not in old
    ]


def _compare_permissions(name: str, before: Any, after: Any) -> list[TermsChange]:
    """Lists in which more items are looser."""
    old, new = before or [], after or []
    return [TermsChange("tightened", name, item, None) for item in old if item not in new] + [
        TermsChange("loosened", name, None, item) for item in new if item not in old
    ]


def _compare_inputs(name: str, before: Any, after: Any) -> list[TermsChange]:
    """An empty list means the whole tracked tree, so naming files is looser."""
    if before and not after:
        return [TermsChange("tightened", name, ", ".join(before), "the tracked tree")]
    if after and not before:
        return [TermsChange("loosened", name, "the tracked tree", ", ".join(after))]
    return _compare_items(name, before, after)


def _ordered_by(rank: Callable[[Any], Any]) -> Rule:
    """A rule for values of which a higher rank is stricter."""

    def rule(name: str, before: Any, after: Any) -> list[TermsChange]:
        if before == after:
            return []
        tighter = before is None or (after is not None and rank(after) > rank(before))
        return [TermsChange("tightened" if tighter else "loosened", name, _as_text(before), _as_text(after))]

    return rule


def _compare_exemptions(name: str, before: Any, after: Any) -> list[TermsChange]:
    old, new = before or {}, after or {}
    return [
        TermsChange("loosened" if field in new else "tightened", f"{name}.{field}", old.get(field), new.get(field))
        for field in sorted({*old, *new})
        if old.get(field) != new.get(field)
    ]


def _compare_baselines(name: str, before: Any, after: Any) -> list[TermsChange]:
    old, new = before or {}, after or {}
    return [
        TermsChange(
            _baseline_change(old.get(path), new.get(path)),
            f"{name}.{path}",
            _test_counts(old.get(path)),
            _test_counts(new.get(path)),
        )
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


def _compare_missions(name: str, before: Any, after: Any) -> list[TermsChange]:
    """A new judge affects no existing criterion. Any other change may make a judge more lenient."""
    old, new = before or {}, after or {}
    changes: list[TermsChange] = []
    for mission in sorted({*old, *new}):
        if mission not in new:
            changes.append(TermsChange("removed", f"{name}.{mission}", "a judge", None))
        elif mission not in old:
            changes.append(TermsChange("added", f"{name}.{mission}", None, "a judge"))
        else:
            for field in sorted({*old[mission], *new[mission]}):
                rule = _MORE if field in _MORE_IS_STRICTER else _any_change_loosens
                changes += rule(f"{name}.{mission}.{field}", old[mission].get(field), new[mission].get(field))
    return changes


_MORE_IS_STRICTER = ("min_verdict_agreement", "spot_check", "alarm_below")


def _any_change_loosens(name: str, before: Any, after: Any) -> list[TermsChange]:
    if canonical_json(before) == canonical_json(after):
        return []
    return [TermsChange("loosened", name, _as_text(before), _as_text(after))]


def _baseline_change(before: Any, after: Any) -> ChangeKind:
    if before is None or after is None:
        return "added" if before is None else "removed"
    lost = {*before["executed"]} - {*after["executed"]}
    forgotten = {*before["skipped"]} - {*after["executed"], *after["skipped"]}
    return "loosened" if lost or forgotten else "tightened"


def _test_counts(baseline: Any) -> str | None:
    if baseline is None:
        return None
    return f"{len(baseline['executed'])} tests, {len(baseline['skipped'])} skipped"


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_as_text(item)}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_MORE = _ordered_by(lambda value: value)
_LESS = _ordered_by(lambda value: -value)

_RULES: dict[str, Rule] = {
    "criteria": _compare_items,
    "outputs": _compare_items,
    "verification_evidence": _compare_items,
    "inputs": _compare_inputs,
    "commands": _compare_items,
    "depends_on": _compare_items,
    "stakes": _ordered_by(STAKES.index),
    "reward_target": _MORE,
    "max_iterations": _LESS,
    "truth_mode": _ordered_by(("off", "strict").index),
    "truth_checks": _compare_items,
    "execution_log_required": _MORE,
    "lesson_capture_required": _MORE,
    "read_only": _LESS,
    "exemptions": _compare_exemptions,
    "hooks": _compare_items,
    "hooks_switched_off": _LESS,
    "baselines": _compare_baselines,
    "missions": _compare_missions,
}

_SETTINGS: dict[str, Rule] = {
    "files": _compare_items,
    "commands": _compare_items,
    "from_base": _compare_items,
    "pass_env": _compare_permissions,
    "keys": _compare_permissions,
    "ci": _LESS,
    "trial_accepts": _LESS,
    "jobs": _MORE,
    "max_stalled": _MORE,
    "max_attempts": _MORE,
    "timeout": _LESS,
    "command_timeout": _LESS,
    "check_timeout": _LESS,
}
