"""Projects with real virtual environments and packages, whose wheels the tests build themselves."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from donewhen.environments.differences import differences
from donewhen.environments.explaining import unexplained
from donewhen.environments.inventory import Wanted, list_environment
from donewhen.environments.listing import Listing
from donewhen.environments.manifests import declared_changes


def wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    files: Mapping[str, str] | None = None,
    *,
    requires: tuple[str, ...] = (),
    points: str = "",
) -> Path:
    """Build a wheel."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    content = dict({f"{module}/__init__.py": f"VERSION = {version!r}\n"} if files is None else files)
    content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    content[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if points:
        content[f"{info}/entry_points.txt"] = points
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in content.items()]
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in content.items():
            archive.writestr(inner, text)
    return path


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


class Venv:
    """A virtual environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.make()

    def make(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.folder)], check=True)

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.folder / "lib" / version / "site-packages"

    def pip(self, *arguments: str | Path) -> None:
        """Run pip, without a network."""
        words = [sys.executable, "-I", "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        done = subprocess.run([*words, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self, *names: str | Path, wheels: Path | None = None) -> None:
        """Install from wheels as from an index."""
        found = ["--find-links", str(wheels)] if wheels is not None else []
        self.pip("install", "-q", "--no-index", *found, *names)

    def unpack(self, path: Path) -> None:
        """What installing a wheel does, without a process."""
        with zipfile.ZipFile(path) as archive:
            archive.extractall(self.site)

    def copy_from_here(self, *names: str) -> None:
        """Install distributions of the environment of these tests."""
        from importlib.metadata import distribution

        for name in names:
            found = distribution(name)
            for file in found.files or ():
                source = Path(str(found.locate_file(file)))
                if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
                    target = self.site / str(file)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source, target)


def listing_of(root: Path, *environments: Path, home: Path | None = None, **wanted: object) -> Listing:
    """What is listed."""
    given = Wanted(root=root, home=home or root / "home", environments=environments, **wanted)  # type: ignore[arg-type]
    return list_environment(given).listing


def sentences(
    before: Listing,
    after: Listing,
    old: Mapping[str, str] | None = None,
    new: Mapping[str, str] | None = None,
    *,
    words: tuple[str, ...] = ("pytest",),
) -> list[str]:
    """What a person has to see, with these manifests before and after."""
    manifests = [{name: text.encode() for name, text in (files or {}).items()} for files in (old, new)]
    declared = declared_changes(manifests[0], manifests[1])
    found = unexplained(differences(before, after), declared, before, after, words=words)
    return [difference.sentence for difference in found]


def package(
    folder: Path, name: str, version: str = "1.0.0", code: str = "module.exports = 1\n", **more: object
) -> Path:
    """A package in a folder `node_modules`."""
    import json

    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text(json.dumps({"name": name, "version": version, **more}))
    (place / "index.js").write_text(code)
    return place


def same_times(path: Path, before: os.stat_result) -> None:
    """Give a file the times that it had."""
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
