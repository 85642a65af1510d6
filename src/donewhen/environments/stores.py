"""The packages in the stores that cargo, Go, Maven and others take dependencies from."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from donewhen.environments.content import Reader, hash_files, readable_name

# What package managers write beside packages each time, and what decides nothing: a package is known by its own name.
_NOTES = re.compile(
    r"""(?:\A|/)(?:
    index/ | db/ | CACHEDIR\.TAG | \.package-cache.* | \.global-cache | \.crates.* | \.cargo-ok
    | cache/(?:lock|vcs/|sumdb/) | cache/download/.*(?:\.lock|/list) | sumdb/
    | _remote\.repositories | _maven\.repositories | [^/]*\.lastUpdated | resolver-status\.properties
    | maven-metadata-[^/]*\.xml(?:\.sha1)? | [^/]*\.lock | journal-1/ | gc\.properties
    )\Z""",
    re.VERBOSE,
)
_CRATE = re.compile(r"(?:src|cache)/[^/]+/([^/]+?)(?:\.crate)?(?:/|\Z)")
_GO = re.compile(r"mod/(?!cache/)(.+?@[^/]+)/")
_GO_DOWNLOAD = re.compile(r"mod/cache/download/(.+)/@v/(.+)\.(?:info|mod|zip|ziphash|partial)\Z")
_CAPITAL = re.compile(r"!([a-z])")


def read_store(reader: Reader, folder: str, locked: Collection[str]) -> dict[str, str]:
    """The packages in a store, with the hashes of their contents. ``locked`` are the packages with their versions that
    lock files name, as ``NAME-VERSION`` or ``NAME@VERSION``; if there are any, the others can't be loaded."""

    def skip(name: str) -> bool:
        if _NOTES.search(name):
            return True
        package = package_in(name)
        return bool(locked) and package is not None and package not in locked

    packages: dict[str, list[tuple[str, str]]] = {}
    for name, content in reader.hash_tree(folder, skip=skip).files.items():
        packages.setdefault(package_in(name) or _folder(name), []).append((readable_name(name), content))
    return {readable_name(name): hash_files(files) for name, files in packages.items()}


def package_in(name: str) -> str | None:
    """The package with its version that a file belongs to, in the stores that have one for each: cargo's and Go's."""
    if crate := _CRATE.match(name):
        return crate[1]
    if module := _GO.match(name):
        return _capitals(module[1])
    if download := _GO_DOWNLOAD.match(name):
        return _capitals(f"{download[1]}@{download[2]}")
    return None


def _capitals(name: str) -> str:
    return _CAPITAL.sub(lambda found: found[1].upper(), name)


def _folder(name: str) -> str:
    """A file of another store counts with those beside it."""
    return os.path.dirname(name) or name  # noqa: PTH120
