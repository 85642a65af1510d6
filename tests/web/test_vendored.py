"""The vendored files are the ones that their page names, and their licences ship with the wheel."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import donewhen

ROOT = Path(__file__).parents[2]
VENDORED = Path(donewhen.__file__).parent / "web" / "vendored"


def test_every_vendored_file_has_its_version_its_hash_and_its_licence() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| `[^`]+` \(npm\) \| ([\d.]+) \| `([0-9a-f]{64})` \| `([^`]+)`",
        (VENDORED / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    files = {path.name for path in VENDORED.iterdir()} - {"README.md"}
    assert files == {name for row in rows for name in (row[0], row[3])}
    for name, version, digest, _ in rows:
        content = (VENDORED / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert f'version:"{version}"'.encode() in content


def test_the_licences_are_part_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {path for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert named >= {*VENDORED.glob("*.LICENSE"), ROOT / "LICENSE"}
