"""The terms of contracts as typed values: what an agreement seals.

The hash of a contract is the hash of its terms, so a struct must give back exactly what it was decoded from: there are
no defaults, unknown fields are refused, and an optional field that is missing stays missing. The version of the terms
is in their ``schema``, which was always part of the hash.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from donewhen.jobs.ledger.evidence_levels import NeededLevel
from donewhen.jobs.ledger.versions import refuse_newer

JOB_TERMS = "donewhen/job-contract/v1"
PROJECT_TERMS = "donewhen/project-contract/v1"

Stakes = Literal["low", "normal", "high", "critical"]
TruthMode = Literal["strict", "off"]
Network = Literal["own", "host"]
SettingValue: TypeAlias = bool | int | float | str | tuple[str, ...]
MissionValue: TypeAlias = str | int | float | tuple[str, ...] | dict[str, Any]


class _Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class JobTerms(_Terms, frozen=True, kw_only=True, tag_field="schema", tag=JOB_TERMS):
    """The terms of a job. The last six were added later; a job may have been agreed without them."""

    job: str
    criteria: tuple[str, ...]
    outputs: tuple[str, ...]
    verification_evidence: tuple[str, ...]
    inputs: tuple[str, ...]
    commands: tuple[str, ...]
    depends_on: tuple[str, ...]
    stakes: Stakes
    reward_target: int
    max_iterations: int
    truth_mode: TruthMode
    truth_checks: tuple[str, ...]
    execution_log_required: bool
    lesson_capture_required: bool
    read_only: bool
    exemptions: dict[str, str]
    work: tuple[str, ...] | UnsetType = UNSET
    """The work area. Jobs that were agreed without one may change everything."""
    present: tuple[str, ...] | UnsetType = UNSET
    prepare: tuple[str, ...] | UnsetType = UNSET
    tests_may_change: tuple[str, ...] | UnsetType = UNSET
    network: Literal["host"] | UnsetType = UNSET
    """Only of jobs whose checks have the network of the machine."""
    needs: dict[str, NeededLevel] | UnsetType = UNSET
    """How strong the evidence for criteria has to be, by criterion; only of those that say it."""


class BaselineTerms(_Terms, frozen=True, kw_only=True):
    """The tests of a baseline, as short hashes."""

    executed: tuple[str, ...]
    skipped: tuple[str, ...]


class MirrorTerms(_Terms, frozen=True, kw_only=True):
    """Where the jobs are mirrored to."""

    repo: str


class MissionTerms(_Terms, frozen=True, kw_only=True):
    """What a judge's verdicts depend on; or ``unreadable``, the error, if the mission could not be read."""

    unreadable: str | UnsetType = UNSET
    mission: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    language: str | UnsetType = UNSET
    words: tuple[str, ...] | UnsetType = UNSET
    sampler: tuple[str, ...] | UnsetType = UNSET
    min_verdict_agreement: int | float | UnsetType = UNSET
    from_job: dict[str, int | tuple[str, ...]] | UnsetType = UNSET
    overrides: tuple[str, ...] | UnsetType = UNSET
    initial_guidance: dict[str, str] | UnsetType = UNSET
    trial: str | dict[str, int | float] | UnsetType = UNSET
    spot_check: int | float | UnsetType = UNSET
    alarm_below: int | float | UnsetType = UNSET

    def values(self) -> dict[str, MissionValue]:
        """The terms that the mission has, by name."""
        values: dict[str, MissionValue] = msgspec.to_builtins(self)
        return values


class ProjectTerms(_Terms, frozen=True, kw_only=True, tag_field="schema", tag=PROJECT_TERMS):
    """The terms of a project. The last four were added later; a project may have been agreed without them."""

    project: str
    criteria: tuple[str, ...]
    settings: dict[str, SettingValue]
    """The settings that differ from their defaults, by their dotted names. Other versions may have other settings."""
    hooks: tuple[str, ...]
    baselines: dict[str, BaselineTerms]
    hooks_switched_off: bool | UnsetType = UNSET
    github: MirrorTerms | UnsetType = UNSET
    missions: dict[str, MissionTerms] | UnsetType = UNSET
    needs: dict[str, NeededLevel] | UnsetType = UNSET

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            expected = SETTING_TYPES.get(name.rpartition(".")[2], ())
            # True is an int for isinstance, but not in a setting.
            if expected and type(value) not in expected:
                raise ValueError(f"Expected `{_NAMES[expected[-1]]}`, got `{_NAMES[type(value)]}` in settings.{name}")


Terms: TypeAlias = JobTerms | ProjectTerms


class DecidedTerms(_Terms, frozen=True, kw_only=True):
    """The terms of a job that a decision sets."""

    max_iterations: int | UnsetType = UNSET
    reward_target: int | UnsetType = UNSET
    stakes: Stakes | UnsetType = UNSET

    def values(self) -> dict[str, int | str]:
        """The terms that are set, by name."""
        values: dict[str, int | str] = msgspec.to_builtins(self)
        return values


SETTING_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("files", "commands", "pass_env", "from_base", "keys", "ssh", "signs_allowed"), (tuple,)),
    **dict.fromkeys(("jobs", "trial_accepts", "ci"), (bool,)),
    **dict.fromkeys(("max_stalled", "max_attempts"), (int,)),
    **dict.fromkeys(("timeout", "command_timeout", "check_timeout"), (int, float)),
    "time": (str, int, float),
    **dict.fromkeys(("run", "baseline", "missions", "api_url", "base", "isolation", "require_job"), (str,)),
}
"""The types of the settings, by the last part of their names."""
_NAMES: Mapping[type, str] = {bool: "bool", int: "int", float: "float", str: "str", tuple: "array"}


def refuse_newer_terms(terms: object) -> None:
    """Raise NewerVersionError if these are terms of a newer version."""
    schema = terms.get("schema") if isinstance(terms, Mapping) else None
    for known in (JOB_TERMS, PROJECT_TERMS):
        refuse_newer(schema, known)


def plain_terms(terms: Terms) -> dict[str, Any]:
    """The terms as plain values, as they are written in an entry."""
    return {name: _with_lists(value) for name, value in msgspec.to_builtins(terms).items()}


def _with_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_lists(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
