"""The project's settings and their loader."""

from donewhen.config.loader import CONFIG_FILE, PROJECT_FILE, find_root, has_settings, load
from donewhen.config.settings import (
    ApprovalSettings,
    GuardSettings,
    JobSettings,
    JudgeSettings,
    Settings,
    TestSettings,
    VerifySettings,
)

__all__ = [
    "CONFIG_FILE",
    "PROJECT_FILE",
    "ApprovalSettings",
    "GuardSettings",
    "JobSettings",
    "JudgeSettings",
    "Settings",
    "TestSettings",
    "VerifySettings",
    "find_root",
    "has_settings",
    "load",
]
