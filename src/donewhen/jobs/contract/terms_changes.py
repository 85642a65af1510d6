"""The differences between two versions of terms, and which of them void an agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias
from unicodedata import normalize

from msgspec import UnsetType

from donewhen.config.hook_terms import renewed_hooks
from donewhen.config.settings import REQUIRE_JOB
from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.plain_text import one_line
from donewhen.isolation.levels import LEVELS
from donewhen.jobs.ledger.evidence_levels import level_rank
from donewhen.jobs.ledger.terms_content import (
    BaselineTerms,
    JobTerms,
    MissionTerms,
    MissionValue,
    ProjectTerms,
    SettingValue,
)
from donewhen.jobs.plan.job import STAKES
from donewhen.jobs.plan.own_commands import checking_commands

ChangeKind = Literal["added", "tightened", "loosened", "removed"]
Changes: TypeAlias = "Iterator[TermsChange]"
MAX_TERM = 200
"""How much of a criterion is shown in a change of what it needs."""
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


def compare_job_terms(before: JobTerms, after: JobTerms) -> Changes:
    """The changes of a job's terms, in the order of the fields' names."""
    yield from _items("commands", before.commands, after.commands)
    yield from _items("criteria", before.criteria, after.criteria)
    yield from _items("depends_on", before.depends_on, after.depends_on)
    yield from _more("execution_log_required", before.execution_log_required, after.execution_log_required)
    yield from _exemptions("exemptions", before.exemptions, after.exemptions)
    yield from _inputs("inputs", before.inputs, after.inputs)
    yield from replaced("job", before.job, after.job)
    yield from _more("lesson_capture_required", before.lesson_capture_required, after.lesson_capture_required)
    yield from _less("max_iterations", before.max_iterations, after.max_iterations)
    yield from _needed("needs", before, after)
    yield from _ranked("network", ("host", "own"), _known(before.network) or "own", _known(after.network) or "own")
    yield from _items("outputs", before.outputs, after.outputs)
    yield from _replaced_permission("prepare", _known(before.prepare), _known(after.prepare))
    yield from _permissions("present", _known(before.present) or (), _known(after.present) or ())
    yield from _less("read_only", before.read_only, after.read_only)
    yield from _more("reward_target", before.reward_target, after.reward_target)
    yield from _ranked("stakes", STAKES, before.stakes, after.stakes)
    yield from _permissions(
        "tests_may_change", _known(before.tests_may_change) or (), _known(after.tests_may_change) or ()
    )
    yield from _items("truth_checks", before.truth_checks, after.truth_checks)
    yield from _ranked("truth_mode", ("off", "strict"), before.truth_mode, after.truth_mode)
    yield from _items("verification_evidence", before.verification_evidence, after.verification_evidence)
    yield from _work_area(_known(before.work), _known(after.work))
    yield from _manual_criteria_loosened(before, after)


def compare_project_terms(before: ProjectTerms, after: ProjectTerms, defaults: Mapping[str, SettingValue]) -> Changes:
    """The changes of a project's terms, in the order of the fields' names. A missing setting has its default."""
    yield from _baselines("baselines", before.baselines, after.baselines)
    yield from _items("criteria", before.criteria, after.criteria)
    repositories = [
        None if isinstance(terms.github, UnsetType) else f"repo: {terms.github.repo}" for terms in (before, after)
    ]
    yield from replaced("github", repositories[0], repositories[1])
    yield from _hooks("hooks", before.hooks, after.hooks)
    yield from _less("hooks_switched_off", _known(before.hooks_switched_off), _known(after.hooks_switched_off))
    yield from _missions("missions", _known(before.missions) or {}, _known(after.missions) or {})
    yield from _needed("needs", before, after)
    yield from replaced("project", before.project, after.project)
    for name in sorted({*before.settings, *after.settings}):
        rule = _SETTINGS.get(name.rpartition(".")[2], replaced)
        default = defaults.get(name)
        yield from rule(f"settings.{name}", before.settings.get(name, default), after.settings.get(name, default))


def _known(value: Any) -> Any:
    return None if isinstance(value, UnsetType) else value


def _manual_criteria_loosened(before: JobTerms, after: JobTerms) -> Changes:
    """A person decides criteria without a check; once there are commands, the commands decide them instead.

    Commands of the tool itself decide no criterion.
    """
    if not checking_commands(before.commands) and checking_commands(after.commands):
        for term in before.criteria:
            if term in after.criteria and (not term.endswith("]") or term.endswith(" []")):
                yield TermsChange("loosened", "criteria", f"{term} (a person decides)", f"{term} (the commands decide)")


def replaced(name: str, before: SettingValue | None, after: SettingValue | None) -> Changes:
    """Values without an order: the old value counts as removed, the new one as added."""
    if canonical_json(before) != canonical_json(after):
        if before not in (None, ()):
            yield TermsChange("removed", name, _as_text(before), None)
        if after not in (None, ()):
            yield TermsChange("added", name, None, _as_text(after))


def _items(name: str, before: Sequence[str], after: Sequence[str]) -> Changes:
    """Lists in which more items are stricter. Two forms of the same accent are one text."""
    old, new = ({normalize("NFC", item) for item in items} for items in (before, after))
    yield from (TermsChange("removed", name, item, None) for item in before if normalize("NFC", item) not in new)
    yield from (TermsChange("added", name, None, item) for item in after if normalize("NFC", item) not in old)


def _hooks(name: str, before: Sequence[str], after: Sequence[str]) -> Changes:
    """A hook that only replaces what an earlier version of donewhen had written is not removed."""
    renewed = renewed_hooks(before, after)
    yield from (TermsChange("tightened", name, old, new) for old, new in renewed.items())
    new = {*renewed.values()} - {*before}
    yield from _items(
        name, [hook for hook in before if hook not in renewed], [hook for hook in after if hook not in new]
    )


def _permissions(name: str, before: Sequence[str], after: Sequence[str]) -> Changes:
    """Lists in which more items are looser."""
    yield from (TermsChange("tightened", name, item, None) for item in before if item not in after)
    yield from (TermsChange("loosened", name, None, item) for item in after if item not in before)


def _work_area(before: Sequence[str] | None, after: Sequence[str] | None) -> Changes:
    """Without a work area, everything may change."""
    if before is None or after is None:
        if before is not after:
            kind: ChangeKind = "loosened" if after is None else "tightened"
            texts = [
                "everything" if area is None else ", ".join(area) or "only the outputs" for area in (before, after)
            ]
            yield TermsChange(kind, "work", texts[0], texts[1])
    else:
        yield from _permissions("work", before, after)


def _replaced_permission(name: str, before: Sequence[str] | None, after: Sequence[str] | None) -> Changes:
    """Commands that build what is checked: any other one may build something else."""
    if (before or ()) != (after or ()):
        yield TermsChange("loosened", name, ", ".join(before or ()) or None, ", ".join(after or ()) or None)


def _inputs(name: str, before: Sequence[str], after: Sequence[str]) -> Changes:
    """An empty list means the whole tracked tree, so naming files is looser."""
    if before and not after:
        yield TermsChange("tightened", name, ", ".join(before), "the tracked tree")
    elif after and not before:
        yield TermsChange("loosened", name, "the tracked tree", ", ".join(after))
    else:
        yield from _items(name, before, after)


def _more(name: str, before: float | None, after: float | None) -> Changes:
    """Numbers and switches of which more is stricter; a missing one requires nothing."""
    if before != after:
        tighter = before is None or (after is not None and after > before)
        yield TermsChange("tightened" if tighter else "loosened", name, _as_text(before), _as_text(after))


def _less(name: str, before: float | None, after: float | None) -> Changes:
    """Numbers and switches of which less is stricter; a missing one requires nothing."""
    if before != after:
        tighter = before is None or (after is not None and after < before)
        yield TermsChange("tightened" if tighter else "loosened", name, _as_text(before), _as_text(after))


def _ranked(name: str, ranks: Sequence[str], before: str, after: str) -> Changes:
    """Words in ascending order of strictness."""
    if before != after:
        tighter = ranks.index(after) > ranks.index(before)
        yield TermsChange("tightened" if tighter else "loosened", name, before, after)


def _needed(name: str, before: JobTerms | ProjectTerms, after: JobTerms | ProjectTerms) -> Changes:
    """How strong the evidence has to be, of each criterion that is still there. Without a level, it may be any."""
    old, new = _known(before.needs) or {}, _known(after.needs) or {}
    kept = {normalize("NFC", term) for term in after.criteria}
    levels = ({normalize("NFC", term): level for term, level in table.items()} for table in (old, new))
    was, now = levels
    for term in sorted({*was, *now} & kept):
        first, then = was.get(term), now.get(term)
        if first != then:
            kind: ChangeKind = "tightened" if level_rank(then) > level_rank(first) else "loosened"
            of = f"of: {one_line(term, MAX_TERM)}"
            yield TermsChange(kind, name, f"{first or 'any'} evidence", f"{then or 'any'} evidence {of}")


def _exemptions(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    for field in sorted({*before, *after}):
        if before.get(field) != after.get(field):
            kind: ChangeKind = "loosened" if field in after else "tightened"
            yield TermsChange(kind, f"{name}.{field}", before.get(field), after.get(field))


def _baselines(name: str, before: Mapping[str, BaselineTerms], after: Mapping[str, BaselineTerms]) -> Changes:
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old != new:
            yield TermsChange(_baseline_change(old, new), f"{name}.{path}", _test_counts(old), _test_counts(new))


def _baseline_change(before: BaselineTerms | None, after: BaselineTerms | None) -> ChangeKind:
    if before is None or after is None:
        return "added" if before is None else "removed"
    lost = {*before.executed} - {*after.executed}
    forgotten = {*before.skipped} - {*after.executed, *after.skipped}
    return "loosened" if lost or forgotten else "tightened"


def _test_counts(baseline: BaselineTerms | None) -> str | None:
    return None if baseline is None else f"{len(baseline.executed)} tests, {len(baseline.skipped)} skipped"


def _missions(name: str, before: Mapping[str, MissionTerms], after: Mapping[str, MissionTerms]) -> Changes:
    """A new judge affects no existing criterion. Any other change may make a judge more lenient."""
    for mission in sorted({*before, *after}):
        if mission not in after:
            yield TermsChange("removed", f"{name}.{mission}", "a judge", None)
        elif mission not in before:
            yield TermsChange("added", f"{name}.{mission}", None, "a judge")
        else:
            old, new = before[mission].values(), after[mission].values()
            for field in sorted({*old, *new}):
                yield from _mission_field(f"{name}.{mission}.{field}", field, old.get(field), new.get(field))


def _mission_field(name: str, field: str, before: MissionValue | None, after: MissionValue | None) -> Changes:
    if canonical_json(before) == canonical_json(after):
        return
    if field in _MORE_IS_STRICTER and isinstance(before, int | float | None) and isinstance(after, int | float | None):
        yield from _more(name, before, after)
    else:
        yield TermsChange("loosened", name, _as_text(before), _as_text(after))


_MORE_IS_STRICTER = ("min_verdict_agreement", "spot_check", "alarm_below")


def _as_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_as_text(item)}" for name, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _probing_time(name: str, before: object, after: object) -> Changes:
    """More time shows more. How long a suite takes is not known here: between it and a number, a person decides."""
    if isinstance(before, int | float) and isinstance(after, int | float):
        yield from _more(name, before, after)
    elif before != after:
        yield TermsChange("tightened" if before == "off" else "loosened", name, _as_text(before), _as_text(after))


# The types of settings are checked when terms are decoded, by the same last part of the name.
_SETTINGS: dict[str, Callable[[str, Any, Any], Changes]] = {
    **dict.fromkeys(("files", "commands", "from_base"), lambda name, old, new: _items(name, old or (), new or ())),
    **dict.fromkeys(
        ("pass_env", "keys", "ssh", "signs_allowed"),
        lambda name, old, new: _permissions(name, old or (), new or ()),
    ),
    **dict.fromkeys(("ci", "trial_accepts", "timeout", "command_timeout", "check_timeout"), _less),
    "time": _probing_time,
    **dict.fromkeys(("jobs", "max_stalled", "max_attempts"), _more),
    "isolation": lambda name, old, new: _ranked(name, ("", *reversed(LEVELS)), old or "", new or ""),
    "require_job": lambda name, old, new: _ranked(name, REQUIRE_JOB, old or "ask", new or "ask"),
}
