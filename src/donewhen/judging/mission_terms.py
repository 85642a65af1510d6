"""The terms of a mission: everything besides learned rules that decides verdicts, and that people agree to."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Literal

import msgspec

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import CODE
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.mission_settings import FromJob, Trial

_LATER_TRIAL_SETTINGS = ("confidence_of_scores", "adoption_confidence", "max_false_release")


def mission_terms(folder: Path) -> dict[str, Any]:
    """The terms of a mission as plain values. If the mission can't be read, the error is the only term."""
    try:
        mission = read_mission(folder, code=False)
        settings = mission.settings
        # These don't decide a verdict: trial decides which rules are learned, the others which verdicts people review.
        return terms_of_mission(mission) | {
            "trial": _trial(settings.trial),
            "spot_check": settings.manual_review.spot_check,
            "alarm_below": settings.manual_review.alarm_below,
        }
    except (DonewhenError, OSError) as error:
        return {"unreadable": str(error).replace(str(folder), folder.name)}


def terms_of_mission(mission: Mission) -> dict[str, Any]:
    """Everything that a verdict depends on, except the ticket and the learned rules."""
    settings = mission.settings
    return {
        "mission": settings.mission,
        "model": settings.model,
        **_plugin_term(settings.model),
        "language": f"{mission.language.agreed_identity} {digest_of(mission.language.hashes)}",
        "words": [mission.language.answer.pass_, mission.language.answer.fail],
        "sampler": [f"{row.samples} at {row.temperature:g}" for row in settings.sampler],
        "min_verdict_agreement": settings.manual_review.min_verdict_agreement,
        "from_job": _from_job(settings.from_job),
        "overrides": [_override_digest(override.name, mission.folder) for override in mission.overrides],
        "initial_guidance": dict(mission.initial_guidance().experiences),
    }


def _plugin_term(model: str) -> dict[str, str]:
    """What a model of others is made of; nothing for a built-in one."""
    from donewhen.models.registry import plugin_of

    plugin = plugin_of(model)
    return {} if plugin is None else {"model_program": plugin.fingerprint()}


def _trial(settings: Trial | Literal["off"]) -> dict[str, Any] | str:
    if settings == "off":
        return settings
    terms: dict[str, Any] = msgspec.to_builtins(settings)
    for name in _LATER_TRIAL_SETTINGS:
        # Missions were agreed to before there were these settings.
        if terms[name] == getattr(Trial(), name):
            del terms[name]
    return terms


def _from_job(settings: FromJob) -> dict[str, Any]:
    terms: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(settings))
    if not settings.may_send:
        # Missions were agreed to before there was this setting.
        del terms["may_send"]
    return terms


def _override_digest(name: str, folder: Path) -> str:
    source = name.rpartition(":")[0]
    code = folder / source if source.endswith(".py") else _module_file(source)
    if code is None:
        return name
    try:
        return f"{name} {digest(read_limited(code, CODE))}"
    except OSError as error:
        raise ConfigError(f"The override {name} can't be read: {error.strerror}.", where=str(code)) from error


def _module_file(module: str) -> Path | None:
    """The file of a module, found without importing it; None if there is none."""
    parts = module.split(".")
    search_path: Sequence[str] | None = None
    for number in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:number]), search_path)
        if spec is None:
            return None
        search_path = spec.submodule_search_locations
        if number == len(parts) and spec.origin is not None and spec.origin.endswith(".py"):
            return Path(spec.origin)
        if search_path is None:
            return None
    return None
