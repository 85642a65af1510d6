"""python -m benchmarks.signs [NAME …]: how many changed files of real packages have signs that ask for a person.

Fetches the last three feature releases of each package from the index, and looks at the changes from each to the next
as if they were the work of a job, and at the newest one as if all of it were new. Tests, settings and documentation are
left out, as they are no product code. `--index URL` (or PIP_INDEX_URL) is the index, `--folder FOLDER` keeps what was
fetched.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import tarfile
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from donewhen.jobs.room.judging_names import is_settings, is_test
from donewhen.signs.kinds import ChangedFile, Sign
from donewhen.signs.signs import Around, signs_of_change, top_modules

PACKAGES = ("click", "jinja2", "requests", "rich", "httpx")
_RELEASES = 3
_NO_PRODUCT = ("docs/", "doc/", "examples/", "example/", "benchmarks/")
_WORD = re.compile(r"\w+")

Tree = Mapping[str, str]


class Result(NamedTuple):
    """The signs of one change."""

    files: int
    signs: tuple[Sign, ...]

    @property
    def files_with_signs(self) -> int:
        return len({sign.file for sign in self.signs})


def releases(index: str, name: str) -> dict[tuple[int, ...], str]:
    """The addresses of the newest source distributions of a package, one for each feature release."""
    with urllib.request.urlopen(f"{index}/{name}/", timeout=60) as answer:  # noqa: S310 - the index
        page = answer.read().decode()
    pattern = rf"{re.escape(name)}-(\d+(?:\.\d+)+)\.tar\.gz"
    newest: dict[tuple[int, ...], tuple[tuple[int, ...], str]] = {}
    for address, text in re.findall(r'<a href="([^"]+)"[^>]*>\s*([^<]+?)\s*</a>', page):
        match = re.fullmatch(pattern, text, re.IGNORECASE)
        if match:
            version = tuple(int(part) for part in match[1].split("."))
            newest[version[:2]] = max(newest.get(version[:2], (version, address)), (version, address))
    return dict(sorted(newest.values())[-_RELEASES:])


def fetched(index: str, name: str, folder: Path) -> list[tuple[str, Tree]]:
    """The texts of the newest releases of a package, the oldest first."""
    trees: list[tuple[str, Tree]] = []
    for version, address in releases(index, name).items():
        label = ".".join(map(str, version))
        archive = folder / f"{name}-{label}.tar.gz"
        if not archive.exists():
            with urllib.request.urlopen(address, timeout=120) as answer:  # noqa: S310 - the index
                archive.write_bytes(answer.read())
        trees.append((label, texts_in(archive.read_bytes())))
    return trees


def texts_in(archive: bytes) -> dict[str, str]:
    """The Python files of a source distribution."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            name = member.name.partition("/")[2]
            content = files.extractfile(member) if member.isfile() and name.endswith(".py") else None
            if content is not None:
                found[name] = content.read().decode("utf-8", "replace")
    return found


def measured(before: Tree, after: Tree) -> Result:
    """The signs of a change of product code that ask for a person."""
    words = {name: frozenset(_WORD.findall(text)) for name, text in after.items()}
    count = Counter(word for found in words.values() for word in found)

    def is_used(word: str, name: str) -> bool:
        return count[word] > (word in words.get(name, ()))

    changed = [
        ChangedFile(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name) and _is_product(name)
    ]
    tests = {name: text for name, text in after.items() if is_test(name)}
    signs = signs_of_change(changed, Around(tests, frozenset({"pytest"}), top_modules([*after]), is_used))
    return Result(sum(file.after is not None for file in changed), tuple(sign for sign in signs if sign.asks))


def _is_product(name: str) -> bool:
    return not is_test(name) and not is_settings(name) and not name.startswith(_NO_PRODUCT)


def _shown(label: str, result: Result, seconds: float, *, lines: bool) -> None:
    print(f"{label:34} {result.files_with_signs:3} of {result.files:4} files  {seconds:5.1f} s")
    for sign in result.signs if lines else ():
        print(f"    {sign.kind:15} {sign.file}:{sign.line}  {sign.why}")


def _total(label: str, results: Sequence[Result]) -> None:
    files, found = sum(result.files for result in results), sum(result.files_with_signs for result in results)
    kinds = Counter(sign.kind for result in results for sign in result.signs)
    listed = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common()) or "none"
    print(f"{label}: {found} of {files} files ({found / max(1, files):.1%}); signs: {listed}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signs", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=PACKAGES, metavar="NAME")
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL"), help="the address of an index (PEP 503)")
    parser.add_argument("--folder", type=Path, help="keep what is fetched here")
    parser.add_argument("--lines", action="store_true", help="show each sign")
    options = parser.parse_args()
    if not options.index:
        parser.error("give the address of a package index: --index URL, or PIP_INDEX_URL")
    changes: list[Result] = []
    whole: list[Result] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        show = partial(_shown, lines=options.lines)
        for name in options.names:
            trees = fetched(options.index.rstrip("/"), name, folder)
            for (old, before), (new, after) in pairwise(trees):
                began = time.perf_counter()
                changes.append(measured(before, after))
                show(f"{name} {old} to {new}", changes[-1], time.perf_counter() - began)
            began = time.perf_counter()
            whole.append(measured({}, trees[-1][1]))
            show(f"{name} {trees[-1][0]}, all of it", whole[-1], time.perf_counter() - began)
    _total("Changed from release to release", changes)
    _total("As if all of it were new", whole)


if __name__ == "__main__":
    main()
