"""Whether a client trusts the folder of a project's hooks, as its own files say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from donewhen.adapters.agent_client import TrustedHook
from donewhen.adapters.copilot_cli.client import CopilotClient
from donewhen.adapters.gemini_cli.client import GeminiClient


def hook(root: Path, *, own: bool = False) -> TrustedHook:
    return TrustedHook("trust", "a line", root, own)


@pytest.mark.parametrize(
    ("content", "health"),
    [
        (None, "broken"),
        ("{", "broken"),
        ("[]", "broken"),
        ('{"trustedFolders": "x"}', "broken"),
        ('{"trustedFolders": ["/elsewhere", 1, ""]}', "broken"),
        ('// Managed automatically.\n{"trustedFolders": ["ROOT"]}', "ok"),
        ('{"trusted_folders": ["PARENT"]}', "ok"),
    ],
)
def test_copilot_runs_the_hooks_of_a_folder_that_its_configuration_trusts(
    tmp_path: Path, content: str | None, health: str
) -> None:
    root = (tmp_path / "project").resolve()
    root.mkdir()
    if content is not None:
        (tmp_path / "config.json").write_text(content.replace("ROOT", str(root)).replace("PARENT", str(root.parent)))
    diagnosis = CopilotClient().trust(hook(root), {"COPILOT_HOME": str(tmp_path)})
    assert diagnosis is not None
    assert diagnosis.health == health
    assert CopilotClient().trust(hook(root, own=True), {"COPILOT_HOME": str(tmp_path)}) is None


@pytest.mark.parametrize(
    ("rule", "folder", "refused"),
    [("DO_NOT_TRUST", "", True), ("DO_NOT_TRUST", "..", True), ("TRUST_FOLDER", "", False), (None, "", False)],
)
def test_gemini_does_not_load_the_hooks_of_a_folder_that_the_person_refused(
    tmp_path: Path, rule: str | None, folder: str, refused: bool
) -> None:
    root = (tmp_path / "project").resolve()
    (tmp_path / ".gemini").mkdir()
    root.mkdir()
    if rule is not None:
        (tmp_path / ".gemini" / "trustedFolders.json").write_text(json.dumps({str((root / folder).resolve()): rule}))
    diagnosis = GeminiClient().trust(hook(root), {"GEMINI_CLI_HOME": str(tmp_path)})
    assert (diagnosis is not None and diagnosis.health == "broken") == refused
    assert GeminiClient().trust(hook(root, own=True), {"GEMINI_CLI_HOME": str(tmp_path)}) is None
