"""Whether a run may become the guidance of its mission: never worse than nothing.

On the validation tickets and on the test tickets the learned judge has to beat the better of the two judges that always
say the same, and the guidance before it. Both comparisons count whole clusters. The false releases have to stay within
the rate that the mission allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.judging.mission_settings import MissionFile, Trial
from donewhen.learning.measuring.metrics import paired_bootstrap
from donewhen.learning.running.run_state import RunState

_RESAMPLES = 2000


class JudgedTwice(NamedTuple):
    """A ticket under the guidance before and after a run."""

    key: str
    label: Binary
    cluster: str
    before: Binary | None
    after: Binary | None


@dataclass(frozen=True)
class Adoption:
    """Whether the learned guidance may be adopted, and why not."""

    accepted: bool
    reason: str = ""


def adoption_of(state: RunState, settings: MissionFile, clusters: Mapping[str, str]) -> Adoption:
    """Decide about the guidance that a run has learned. Without trials nothing is decided: a person chose that."""
    if settings.trial == "off" or not state.changes:
        return Adoption(accepted=True)
    parts = {
        "validation": [
            JudgedTwice(key, label, clusters.get(key, key), before, after)
            for key, label, before, after, *_ in state.assessed
        ],
        "test": list(_test_rows(state, clusters)),
    }
    for name, rows in parts.items():
        if not rows and name == "validation" and state.status == "budget_exhausted":
            # Calls are reserved for the test tickets only; they decide alone.
            continue
        if not rows:
            return Adoption(accepted=False, reason=f"no {name} ticket was judged before and after the run")
        reason = _objection(name, rows, settings.trial, settings.seed)
        if reason is not None:
            return Adoption(accepted=False, reason=reason)
    reason = _released_too_much([row for rows in parts.values() for row in rows], settings.trial)
    return Adoption(accepted=reason is None, reason=reason or "")


def _test_rows(state: RunState, clusters: Mapping[str, str]) -> Iterable[JudgedTwice]:
    before = {row[0]: row[2] for row in state.evaluations.get("before", [])}
    for key, label, after, *_ in state.evaluations.get("after", []):
        yield JudgedTwice(key, label, clusters.get(key, key), before.get(key), after)


def _objection(name: str, rows: Sequence[JudgedTwice], trial: Trial, seed: int) -> str | None:
    after = [row.after != row.label for row in rows]
    before = [row.before != row.label for row in rows]
    common: Binary = "pass" if 2 * sum(row.label == "pass" for row in rows) > len(rows) else "fail"
    trivial = [row.label != common for row in rows]
    right = f"{len(rows) - sum(after)} of {len(rows)} {name} tickets right"
    if sum(after) >= sum(trivial):
        return f"it has {right}, and always saying {common} has {len(rows) - sum(trivial)}"
    if sum(after) >= sum(before):
        return f"it has {right}, and the guidance before has {len(rows) - sum(before)}"
    found = paired_bootstrap(trivial, after, _RESAMPLES, seed, [row.cluster for row in rows])
    if found.share_lower < trial.adoption_confidence:
        groups = len({row.cluster for row in rows})
        return (
            f"it has {right} and always saying {common} has {len(rows) - sum(trivial)}, which may be chance "
            f"({groups} clusters; better in {found.share_lower:.0%} of the resamples)"
        )
    return None


def _released_too_much(rows: Sequence[JudgedTwice], trial: Trial) -> str | None:
    bad = [row for row in rows if row.label == "fail"]
    released = sum(row.after == "pass" for row in bad)
    if released <= trial.max_false_release * len(bad):
        return None
    return (
        f"it lets {released} of {len(bad)} bad tickets through, and the mission allows {trial.max_false_release:.0%} "
        "(trial.max_false_release)"
    )
