"""The distributions in a Python environment, and what belongs to none of them."""

from __future__ import annotations

import ast
import csv
import json
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Any
from urllib.parse import unquote, urlsplit

from donewhen.environments.content import Reader, Tree, hash_files, hash_of, read_small, readable_name
from donewhen.environments.listing import Distribution, PythonEnvironment
from donewhen.environments.names import normalized, required_name

_PARTS = ("bin", "include", "lib", "lib64", "Lib", "Scripts", "share", "etc")
"""What of an environment programs may find; the rest is not in reach of checks."""
_SITE = re.compile(r"(?:lib|lib64|Lib)/(?:(?:python|pypy)[\d.]+t?/)?(?:site|dist)-packages/")
_METADATA = re.compile(r"[^/]+\.(?:dist-info|egg-info)(?:/|\Z)")
_KEPT = frozenset(
    {"METADATA", "PKG-INFO", "RECORD", "entry_points.txt", "direct_url.json", "top_level.txt", "installed-files.txt"}
)
# What installers note about how they have installed something. Nothing of it is loaded, and it differs each time.
_NOTES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"})
_PROGRAM_GROUPS = frozenset({"console_scripts", "gui_scripts"})
_AT_START = ("sitecustomize", "usercustomize")
_SUFFIX = re.compile(r"\.(?:py|pyi|pyc|(?:cpython|pypy|abi|cp)[^/]*\.(?:so|pyd)|so|pyd)\Z")
_SETTINGS = frozenset(
    {"home", "include-system-site-packages", "executable", "base-executable", "base-prefix", "base-exec-prefix"}
)
"""What decides in `pyvenv.cfg`. The rest says how the environment was made."""
_OWN_FILE = re.compile(r"(?:_+editable_(?:impl)?_*.*|[^/]*\.pth)\Z")
_EDITABLE = re.compile(rb"__editable__[\w.]*")
"""In the names of the modules that editable installations add: the version is a part of them."""


@dataclass(frozen=True)
class _Installed:
    distribution: Distribution
    files: frozenset[str]


def read_environment(reader: Reader, folder: str, root: str, *, parts: Sequence[str] = _PARTS) -> PythonEnvironment:
    """What is installed in a folder, which is a virtual environment, or the prefix of an interpreter."""
    tree = Tree()
    for part in parts:
        path = f"{folder}/{part}"
        if os.path.islink(path):  # noqa: PTH114
            tree.files[part] = reader.hash_link(path)
        elif os.path.isdir(path):  # noqa: PTH112
            found = reader.hash_tree(path, keep=_is_kept)
            tree.files |= {f"{part}/{name}": content for name, content in found.files.items()}
            tree.contents |= {f"{part}/{name}": content for name, content in found.contents.items()}
    return _environment(tree, root, _settings(f"{folder}/pyvenv.cfg"))


def read_site(reader: Reader, folder: str, root: str) -> PythonEnvironment:
    """What is installed in a folder that Python imports from."""
    tree = reader.hash_tree(folder, keep=_is_kept)
    inner = Tree(
        {f"lib/site-packages/{name}": content for name, content in tree.files.items()},
        {f"lib/site-packages/{name}": content for name, content in tree.contents.items()},
    )
    return _environment(inner, root, {})


def _is_kept(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last in _KEPT or last.endswith((".pth", ".egg-info")) or "editable_" in last


def _environment(tree: Tree, root: str, settings: dict[str, str]) -> PythonEnvironment:
    sites: dict[str, dict[str, None]] = {}
    below: dict[str, set[str]] = {}
    for name in tree.files:
        if found := _SITE.match(name):
            inner = found.end()
            site = name[:inner]
            sites.setdefault(site, {})
            if metadata := _METADATA.match(name, inner):
                sites[site][metadata.group().rstrip("/")] = None
                below.setdefault(f"{site}{metadata.group().rstrip('/')}", set()).add(name)
    packages = {
        site: {name for name in tree.files if name.startswith(site) and name.endswith("/__init__.py")} for site in sites
    }
    installed = [
        _installed(tree, site, metadata, below[f"{site}{metadata}"], packages[site], root)
        for site, found_metadata in sites.items()
        for metadata in found_metadata
    ]
    owned = {name for found in installed for name in found.files}
    distributions = sorted((found.distribution for found in installed), key=lambda found: (found.name, found.version))
    return PythonEnvironment(tuple(distributions), _loose(tree, owned, sites), settings)


def _installed(tree: Tree, site: str, metadata: str, described: set[str], packages: set[str], root: str) -> _Installed:
    """A distribution with its files. Whoever says which files are its own decides only what a difference is called."""
    inside = f"{site}{metadata}"

    def text(*names: str) -> str:
        found = (tree.contents.get(f"{inside}/{name}" if name else inside, b"") for name in names)
        return next((content.decode("utf-8", "replace") for content in found if content), "")

    headers = HeaderParser().parsestr(text("METADATA", "PKG-INFO", ""))
    files = {*described, *_recorded(tree, site, inside, text)}
    source = _source(text("direct_url.json"))
    own = _is_in(source, root)
    groups, scripts = _entry_points(text("entry_points.txt"))
    tops = {top for name in files if (top := _top(name, site, packages)) is not None}
    tops = tops or {name for name in text("top_level.txt").split() if "/" not in name}
    starts = sorted(
        readable_name(name[len(site) :])
        for name in files
        if name.startswith(site) and _runs_at_start(name[len(site) :])
    )
    scripts |= {posixpath.basename(name) for name in files if name.startswith(("bin/", "Scripts/"))}
    # `{name}-{version}.dist-info`, if the headers are missing.
    named = metadata.rpartition(".")[0].split("-")
    name = normalized(str(headers.get("Name", "") or named[0]))
    version = str(headers.get("Version", "") or "-".join(named[1:2])).strip()
    lines = [str(line) for line in headers.get_all("Requires-Dist", [])]
    always = {found for line in lines if "extra" not in line.partition(";")[2] and (found := required_name(line))}
    optional = {found for line in lines if (found := required_name(line))} - always
    return _Installed(
        Distribution(
            name=readable_name(name),
            version=readable_name(version),
            hash=_own_hash(tree, files, site, inside, root) if own else _hash(tree, files),
            groups=tuple(sorted(map(readable_name, groups))),
            source=readable_name(source),
            starts=tuple(starts),
            tops=tuple(sorted(map(readable_name, tops))),
            scripts=tuple(sorted(map(readable_name, scripts))),
            requires=tuple(sorted(always)),
            optional=tuple(sorted(optional)),
            own=own,
        ),
        frozenset(files),
    )


def _recorded(tree: Tree, site: str, inside: str, text: Any) -> Iterator[str]:
    """The files of a distribution, as far as its metadata name them and they exist."""
    record, installed = text("RECORD"), text("installed-files.txt")
    if record:
        with suppress(csv.Error):
            for row in csv.reader(record.splitlines()):
                if row and (name := _in_environment(site, row[0])) in tree.files:
                    yield name
    elif installed:
        for line in installed.splitlines():
            if (name := _in_environment(inside, line)) in tree.files:
                yield name
    else:
        named = inside[len(site) :].split("-")[0]
        tops = set(text("top_level.txt").split()) or {named, named.casefold(), named.replace(".", "/")}
        for name in tree.files:
            inner = name[len(site) :] if name.startswith(site) else ""
            if inner and _SUFFIX.sub("", inner.partition("/")[0]) in tops:
                yield name


def _in_environment(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name))


def _hash(tree: Tree, files: Iterable[str]) -> str:
    counted = (name for name in files if not _is_note(name))
    return hash_files((readable_name(name), tree.files[name]) for name in counted)


def _is_note(name: str) -> bool:
    folder, _, last = name.rpartition("/")
    return last in _NOTES and folder.endswith((".dist-info", ".egg-info"))


def _own_hash(tree: Tree, files: set[str], site: str, inside: str, root: str) -> str:
    """The hash of an editable installation of the project. Its metadata repeat what the project says; what counts is
    which code finds the project's modules, not which of the project's folders it finds."""
    found: list[tuple[str, str]] = []
    for name in files:
        if name.startswith(f"{inside}/") or not name.startswith(site):
            continue
        last = name.rpartition("/")[2]
        content = tree.contents.get(name)
        if content is None or not _OWN_FILE.match(last):
            found.append((readable_name(name), tree.files[name]))
        elif last.endswith(".pth"):
            lines = content.decode("utf-8", "replace").splitlines()
            lines = [_EDITABLE.sub(b"__editable__", line.encode()).decode() for line in lines]
            found += [(".pth", line) for line in lines if line.strip() and not _is_in(line.strip(), root)]
        else:
            found.append((".py", hash_of([_without_places(content, root).decode("utf-8", "backslashreplace")])))
    return hash_files(found)


def _without_places(content: bytes, root: str) -> bytes:
    """The code of a finder without the names of modules and the folders of the project that it maps them to."""
    lines = []
    for line in content.splitlines():
        if _is_mapping(line, root):
            line = line.partition(b"=")[0]
        lines.append(_EDITABLE.sub(b"__editable__", line))
    return b"\n".join(lines)


def _is_mapping(line: bytes, root: str) -> bool:
    """Whether a line maps modules to folders of the project, and does nothing else."""
    name, _, value = line.partition(b"=")
    if name.split(b":")[0].strip() not in (b"MAPPING", b"NAMESPACES", b"PATH_PLACEHOLDER"):
        return False
    try:
        mapping = ast.literal_eval(value.strip().decode())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    if not isinstance(mapping, dict):
        return isinstance(mapping, str)
    folders = [path for value in mapping.values() for path in ([value] if isinstance(value, str) else value)]
    return all(isinstance(path, str) and _is_in(path, root) for path in folders)


def _source(text: str) -> str:
    """Where a distribution was installed from, by what the installer has noted."""
    if not text:
        return ""
    try:
        noted = json.loads(text)
        address = str(noted.get("url", "")) or "unknown"
    except (ValueError, AttributeError, RecursionError):
        return "unknown"
    if address.startswith("file:"):
        path = unquote(urlsplit(address).path)
        info = noted.get("dir_info")
        # A copy of the project's files is another thing: checks would find it and not the work.
        return path if isinstance(info, dict) and info.get("editable") is True else f"file:{path}"
    return address


def _is_in(path: str, root: str) -> bool:
    return path.startswith("/") and (posixpath.normpath(path) + "/").startswith(f"{root.rstrip('/')}/")


def _entry_points(text: str) -> tuple[set[str], set[str]]:
    """The groups that are no programs, and the names of programs."""
    groups: set[str] = set()
    scripts: set[str] = set()
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] \t")
        elif line and line[0] not in "#;":
            if group in _PROGRAM_GROUPS:
                scripts.add(line.partition("=")[0].strip())
            else:
                groups.add(group)
    return groups, scripts


def _top(name: str, site: str, packages: set[str]) -> str | None:
    """The name under which a file is imported; the second level of a namespace, which several distributions share."""
    inner = name[len(site) :] if name.startswith(site) else ""
    first, slash, rest = inner.partition("/")
    if not first or first.endswith((".dist-info", ".egg-info", ".pth")) or first == "__pycache__":
        return None
    if not slash:
        return _SUFFIX.sub("", first) if _SUFFIX.search(first) else None
    if f"{site}{first}/__init__.py" in packages:
        return first
    return f"{first}/{_SUFFIX.sub('', rest.partition('/')[0])}"


def _runs_at_start(inner: str) -> bool:
    if "/" in inner:
        return inner.startswith(tuple(f"{name}/__init__." for name in _AT_START))
    return inner.endswith((".pth", "._pth")) or (
        _SUFFIX.search(inner) is not None and _SUFFIX.sub("", inner) in _AT_START
    )


def _loose(tree: Tree, owned: set[str], sites: Mapping[str, object]) -> dict[str, str]:
    """What belongs to no distribution, each folder as one."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, content in tree.files.items():
        if name in owned:
            continue
        site = next((site for site in sites if name.startswith(site)), "")
        first, slash, rest = name[len(site) :].partition("/")
        if not site and slash:
            # `bin/NAME`, `lib/NAME`
            second, slash, rest = rest.partition("/")
            first = f"{first}/{second}"
        groups.setdefault(f"{site}{first}{slash}", []).append((readable_name(rest), content))
    return {
        readable_name(name): hash_files(files) if name.endswith("/") else files[0][1] for name, files in groups.items()
    }


def _settings(path: str) -> dict[str, str]:
    found = {}
    for line in read_small(path).decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip().casefold() in _SETTINGS:
            found[name.strip().casefold()] = value.strip()
    return found
