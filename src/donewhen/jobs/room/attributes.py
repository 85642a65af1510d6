"""Which agreed files have another content in a checkout than in the repository, by the agreed `.gitattributes`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from donewhen.foundation.git import GitError, git
from donewhen.foundation.git_objects import LINK, TreeFile
from donewhen.jobs.room.agreed_tree import AgreedFiles

RULES = ".gitattributes"
# What makes git write other bytes than it stores. `text` alone does so only by the settings of a user.
_CONVERTS = re.compile(rb"\bfilter=|\beol=crlf\b|\bworking-tree-encoding=|\bident\b")
_FILTER = re.compile(rb"\bfilter=(\S+)")
_ASKED = ("filter", "eol", "text", "working-tree-encoding", "ident")
_NOT_SET = ("unspecified", "unset", "set")


def converting_parts(agreed: AgreedFiles) -> Iterator[tuple[str, dict[str, TreeFile], dict[str, TreeFile]]]:
    """The repository and each of its submodules, if its attributes convert files: its folder with a trailing slash
    (empty for the repository itself), its files by their names below it, and its files with attributes."""
    if not agreed.place.has_git:
        return
    rules = [name for name, file in agreed.files.items() if _is_rules(name) and file.mode != LINK]
    if not rules:
        return
    contents = agreed.blobs.contents([(name, agreed.files[name].blob) for name in rules])
    folders = {
        _part_of(name, agreed.submodules)
        for name, content in zip(rules, contents, strict=True)
        if _CONVERTS.search(content)
    }
    for folder in sorted(folders):
        files = {
            name.removeprefix(folder): file
            for name, file in agreed.files.items()
            if _part_of(name, agreed.submodules) == folder
        }
        yield folder, files, {name: file for name, file in files.items() if _is_rules(name)}


def named_filters(agreed: AgreedFiles) -> frozenset[str]:
    """The names of all filters that the agreed attributes mention."""
    found: set[str] = set()
    for folder, _, rules in converting_parts(agreed):
        for content in agreed.blobs.contents([(f"{folder}{name}", file.blob) for name, file in rules.items()]):
            found |= {os.fsdecode(name) for name in _FILTER.findall(content)}
    return frozenset(found)


def conversions(place: Path, names: Iterable[str]) -> dict[str, str]:
    """Those of some names that git converts, with the name of their filter, or an empty one; ``place`` is a repository
    with nothing but the agreed attributes."""
    given = b"".join(os.fsencode(name) + b"\0" for name in names)
    answer = git(place, "check-attr", "--stdin", "-z", *_ASKED, given=given)
    if answer is None:
        raise GitError("git can't read the agreed attributes.", where=RULES)
    parts = answer.split(b"\0")
    found: dict[str, dict[str, str]] = {}
    for name, attribute, value in zip(parts[0::3], parts[1::3], parts[2::3], strict=False):
        found.setdefault(os.fsdecode(name), {})[attribute.decode()] = os.fsdecode(value)
    return {name: _filter(values) for name, values in found.items() if _is_converted(values)}


def _is_converted(values: Mapping[str, str]) -> bool:
    return (
        bool(_filter(values))
        or (values.get("eol") == "crlf" and values.get("text") != "unset")
        or values.get("working-tree-encoding", "unset") not in _NOT_SET
        or values.get("ident") == "set"
    )


def _filter(values: Mapping[str, str]) -> str:
    value = values.get("filter", "unset")
    return "" if value in _NOT_SET else value


def _is_rules(name: str) -> bool:
    return name.rpartition("/")[2] == RULES


def _part_of(name: str, submodules: Collection[str]) -> str:
    above = [folder for folder in submodules if name.startswith(f"{folder}/")]
    return f"{max(above, key=len)}/" if above else ""
