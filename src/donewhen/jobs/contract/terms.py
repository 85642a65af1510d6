"""What was agreed: the terms of a job and of its project in one canonical form, and how they have changed since.

Terms are plain JSON values. They leave out what does not matter (ids of criteria, order, white space), so that the same
agreement has the same hash, whoever wrote it down and wherever it stands.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from donewhen.config.project_hooks import are_hooks_disabled, project_hooks
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
    """One difference between what was agreed and what stands there now."""

    kind: ChangeKind
    field: str
    before: str | None
    after: str | None

    @property
    def voids(self) -> bool:
        """Whether somebody has to agree again."""
        return self.kind in _VOIDING


def job_terms(job: Job) -> Terms:
    """What is agreed when a job is."""
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


def project_terms(project: Project, settings: Settings, missions: Mapping[str, Path] | None = None) -> Terms:
    """What is agreed when a project is: its criteria, and the gate's own configuration, hooks and judges as parsed
    values. ``missions`` are the folders of those."""
    terms = {
        "schema": PROJECT_TERMS,
        "project": project.id,
        "criteria": _sorted({criterion_term(criterion) for criterion in project.criteria}),
        "settings": dict(_set_by_hand(settings, "")),
        "hooks": _sorted(
            f"{hook.file}: {hook.event}{f' ({hook.matcher})' if hook.matcher else ''}: {hook.command} [{hook.timeout} s]"
            for hook in project_hooks(settings.root)
        ),
        "hooks_switched_off": are_hooks_disabled(settings.root),
        "baselines": _baselines(settings),
    }
    if project.github_enabled:
        # Switched off, parity would be left out of every score; and another repository may have other readers.
        terms["github"] = {"repo": project.github_repo}
    return {**terms, "missions": _missions(missions)} if missions else terms


def terms_hash(terms: Terms) -> str:
    """The name of an agreement."""
    return digest_of(terms)


def compare_terms(before: Terms, after: Terms) -> tuple[TermsChange, ...]:
    """How ``after`` differs from ``before``, field by field."""
    found: list[TermsChange] = []
    for name in sorted({*before, *after}):
        if name == "settings":
            for setting in sorted({*before[name], *after[name]}):
                rule = _SETTINGS.get(setting.rpartition(".")[2], _replaced)
                default = _defaults().get(setting)
                old, new = before[name].get(setting, default), after[name].get(setting, default)
                found += rule(f"settings.{setting}", old, new)
        else:
            found += _RULES.get(name, _replaced)(name, before.get(name), after.get(name))
    return (*found, *_taken_over(before, after))


def _taken_over(before: Terms, after: Terms) -> Iterator[TermsChange]:
    """Criteria without a check are a person's while there are no commands; the first command would take them over."""
    if not before.get("commands") and after.get("commands"):
        for one in before.get("criteria") or ():
            if one in (after.get("criteria") or ()) and (not one.endswith("]") or one.endswith(" []")):
                yield TermsChange("loosened", "criteria", f"{one} (a person decides)", f"{one} (the commands decide)")


def have_same_shape(one: Terms, other: Terms) -> bool:
    """Whether the terms have the same fields, each with a value of the same kind."""
    # Missions, and a mirror, were agreed to before there were any.
    names = {*one, *other} - {"missions", "github"}
    missions = [terms.get("missions", {}) for terms in (one, other)]
    return (
        names <= set(one)
        and names <= set(other)
        and all(_is_like(name, one[name], other[name]) for name in names)
        and all(isinstance(terms, dict) and all(isinstance(of, dict) for of in terms.values()) for terms in missions)
        and all(isinstance(terms.get("github", {}), dict) for terms in (one, other))
    )


def _is_like(name: str, one: Any, other: Any) -> bool:
    if type(one) is not type(other) or (name == "stakes" and other not in STAKES):
        return False
    if name == "truth_mode":
        return other in ("off", "strict")
    if isinstance(other, list):
        return all(isinstance(item, str) for item in other)
    if name == "baselines":
        return all(isinstance(item, dict) and set(item) == {"executed", "skipped"} for item in other.values())
    if name == "exemptions":
        return all(isinstance(item, str) for item in other.values())
    return True


def normal_command(text: str) -> str:
    """A command with the white space that does not matter taken out; one that can't be run stays as it is."""
    try:
        return shlex.join(split_command(text))
    except DonewhenError:
        return text


def criterion_term(criterion: Criterion) -> str:
    """A criterion as it stands in the terms."""
    check = criterion.check
    if check is None:
        # Prose that ends like a check must not be taken for one.
        return f"{criterion.text} []" if criterion.text.endswith("]") else criterion.text
    return f"{criterion.text} [check: {check.normal}]"


def _sorted(values: Iterable[str]) -> list[str]:
    return sorted(set(values))


def _set_by_hand(table: Any, prefix: str) -> Iterator[tuple[str, Any]]:
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
    found: dict[str, Any] = {}
    for guard in (settings.stop, settings.subagent_stop, settings.task_completed):
        path = guard.tests.baseline if guard.tests is not None else None
        if path is not None and path not in found:
            try:
                baseline = SuiteBaseline.load(settings.root / path)
            except ConfigError:
                continue
            found[path] = {"executed": _marks(baseline.executed), "skipped": _marks(baseline.skipped)}
    return found


def _missions(folders: Mapping[str, Path]) -> dict[str, Any]:
    # Where there are none, nothing that judges is loaded.
    from donewhen.judging.mission_terms import mission_terms

    return {name: mission_terms(folder) for name, folder in folders.items()}


def _marks(ids: Iterable[str]) -> list[str]:
    """Test ids shortened to what tells them apart: a suite has thousands, and the ledger keeps them."""
    return sorted({hashlib.sha256(one.encode("utf-8", "surrogatepass")).hexdigest()[:12] for one in ids})


Rule: TypeAlias = Callable[[str, Any, Any], "list[TermsChange]"]


def _replaced(name: str, before: Any, after: Any) -> list[TermsChange]:
    """Nobody can tell which of two texts asks for more: the old one is removed, the new one added."""
    if canonical_json(before) == canonical_json(after):
        return []
    gone = [] if before in (None, [], {}) else [TermsChange("removed", name, _shown(before), None)]
    return gone + ([] if after in (None, [], {}) else [TermsChange("added", name, None, _shown(after))])


def _items(name: str, before: Any, after: Any) -> list[TermsChange]:
    """More items ask for more."""
    old, new = before or [], after or []
    return [TermsChange("removed", name, one, None) for one in old if one not in new] + [
        TermsChange("added", name, None, one) for one in new if one not in old
    ]


def _permissions(name: str, before: Any, after: Any) -> list[TermsChange]:
    """More items allow more."""
    old, new = before or [], after or []
    return [TermsChange("tightened", name, one, None) for one in old if one not in new] + [
        TermsChange("loosened", name, None, one) for one in new if one not in old
    ]


def _inputs(name: str, before: Any, after: Any) -> list[TermsChange]:
    """No list stands for the whole tracked tree, so naming some files narrows what is watched."""
    if before and not after:
        return [TermsChange("tightened", name, ", ".join(before), "the tracked tree")]
    if after and not before:
        return [TermsChange("loosened", name, "the tracked tree", ", ".join(after))]
    return _items(name, before, after)


def _ordered(rank: Callable[[Any], Any]) -> Rule:
    """The higher the rank, the more is asked for."""

    def rule(name: str, before: Any, after: Any) -> list[TermsChange]:
        if before == after:
            return []
        tighter = before is None or (after is not None and rank(after) > rank(before))
        return [TermsChange("tightened" if tighter else "loosened", name, _shown(before), _shown(after))]

    return rule


def _exemptions(name: str, before: Any, after: Any) -> list[TermsChange]:
    old, new = before or {}, after or {}
    return [
        TermsChange("loosened" if one in new else "tightened", f"{name}.{one}", old.get(one), new.get(one))
        for one in sorted({*old, *new})
        if old.get(one) != new.get(one)
    ]


def _baseline_rule(name: str, before: Any, after: Any) -> list[TermsChange]:
    old, new = before or {}, after or {}
    return [
        TermsChange(
            _compared(old.get(path), new.get(path)), f"{name}.{path}", _counted(old.get(path)), _counted(new.get(path))
        )
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


def _mission_rule(name: str, before: Any, after: Any) -> list[TermsChange]:
    """A judge that is new asks for nothing that somebody wanted; another one may be milder, whatever is another."""
    old, new = before or {}, after or {}
    found: list[TermsChange] = []
    for one in sorted({*old, *new}):
        if one not in new:
            found.append(TermsChange("removed", f"{name}.{one}", "a judge", None))
        elif one not in old:
            found.append(TermsChange("added", f"{name}.{one}", None, "a judge"))
        else:
            for field in sorted({*old[one], *new[one]}):
                rule = _MORE if field in _MORE_IS_STRICTER else _otherwise
                found += rule(f"{name}.{one}.{field}", old[one].get(field), new[one].get(field))
    return found


_MORE_IS_STRICTER = ("min_verdict_agreement", "spot_check", "alarm_below")


def _otherwise(name: str, before: Any, after: Any) -> list[TermsChange]:
    if canonical_json(before) == canonical_json(after):
        return []
    return [TermsChange("loosened", name, _shown(before), _shown(after))]


def _compared(before: Any, after: Any) -> ChangeKind:
    if before is None or after is None:
        return "added" if before is None else "removed"
    lost = {*before["executed"]} - {*after["executed"]}
    forgotten = {*before["skipped"]} - {*after["executed"], *after["skipped"]}
    return "loosened" if lost or forgotten else "tightened"


def _counted(baseline: Any) -> str | None:
    if baseline is None:
        return None
    return f"{len(baseline['executed'])} tests, {len(baseline['skipped'])} skipped"


def _shown(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_shown(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_MORE = _ordered(lambda value: value)
_LESS = _ordered(lambda value: -value)

_RULES: dict[str, Rule] = {
    "criteria": _items,
    "outputs": _items,
    "verification_evidence": _items,
    "inputs": _inputs,
    "commands": _items,
    "depends_on": _items,
    "stakes": _ordered(STAKES.index),
    "reward_target": _MORE,
    "max_iterations": _LESS,
    "truth_mode": _ordered(("off", "strict").index),
    "truth_checks": _items,
    "execution_log_required": _MORE,
    "lesson_capture_required": _MORE,
    "read_only": _LESS,
    "exemptions": _exemptions,
    "hooks": _items,
    "hooks_switched_off": _LESS,
    "baselines": _baseline_rule,
    "missions": _mission_rule,
}

_SETTINGS: dict[str, Rule] = {
    "files": _items,
    "commands": _items,
    "from_base": _items,
    "pass_env": _permissions,
    "keys": _permissions,
    "ci": _LESS,
    "trial_accepts": _LESS,
    "jobs": _MORE,
    "max_stalled": _MORE,
    "max_attempts": _MORE,
    "timeout": _LESS,
    "command_timeout": _LESS,
    "check_timeout": _LESS,
}
