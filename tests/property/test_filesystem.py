"""Whatever path is asked for, nothing outside is reached; and both filesystems give the same answers."""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from donewhen.filesystem import Filesystem, FilesystemError, HostFilesystem, InMemoryFilesystem, PathEscapeError
from donewhen.filesystem.protocol import split_path
from donewhen_kit import examples

# --- how a path is read

PARTS = st.sampled_from(["..", ".", "", "a", "b", "...", "..a", " ", "~"])
PATHS = st.lists(PARTS, min_size=1, max_size=8).map("/".join)


@settings(max_examples=examples(200), deadline=None)
@given(PATHS)
@example("a/..")
@example("a/../..")
@example("..a/../..")
def test_a_path_is_read_as_the_system_would_write_it_normally_or_is_refused(path: str) -> None:
    normal = posixpath.normpath(path)
    if not path:
        with pytest.raises(FilesystemError):
            split_path(path)
    elif path.startswith("/") or normal == ".." or normal.startswith("../"):
        with pytest.raises(PathEscapeError):
            split_path(path)
    else:
        assert "/".join(split_path(path)) == ("" if normal == "." else normal)


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=30))
def test_any_text_is_a_path_below_the_root_or_an_error_of_the_filesystem(text: str) -> None:
    try:
        parts = split_path(text)
    except FilesystemError as error:
        str(error).encode()
        return
    for part in parts:
        assert part not in ("", ".", "..")
        assert "/" not in part
        assert "\0" not in part
    assert not parts or split_path("/".join(parts)) == parts


# --- what can be reached

OUTSIDE = b"outside"
LINKED = st.sampled_from(
    ["..", ".", "", "d", "file", "in", "up", "here", "out", "out-file", "top",
     "parent", "missing", "circle", "secret", "root"]
)  # fmt: skip
LINKED_PATHS = st.lists(LINKED, min_size=1, max_size=6).map("/".join)


def build(base: Path) -> HostFilesystem:
    """A root full of links: some stay inside, some lead out."""
    root = base / "root"
    (root / "d").mkdir(parents=True)
    (root / "file").write_bytes(b"inside")
    (root / "d" / "file").write_bytes(b"inside")
    (base / "secret").write_bytes(OUTSIDE)
    (base / "dir").mkdir()
    for name in ("secret", "file", "d"):
        (base / "dir" / name).write_bytes(OUTSIDE)
    for folder, up in ((root, ".."), (root / "d", "../..")):
        (folder / "in").symlink_to(root / "d")
        (folder / "here").symlink_to(".")
        (folder / "out").symlink_to(f"{up}/dir")
        (folder / "out-file").symlink_to(base / "secret")
        (folder / "top").symlink_to("/")
        (folder / "parent").symlink_to(up)
        (folder / "circle").symlink_to("circle")
    (root / "d" / "up").symlink_to("..")
    return HostFilesystem(root)


def everything_outside(base: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(base)): path.read_bytes()
        for path in (base / "secret", *sorted((base / "dir").iterdir()))
        if path.is_file()
    } | {"names": " ".join(sorted(os.listdir(base))).encode()}


@settings(max_examples=examples(60), deadline=None)
@given(LINKED_PATHS)
def test_through_any_tangle_of_links_nothing_outside_is_reached(path: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        files = build(base)
        before = everything_outside(base)
        methods: list[Callable[[], object]] = [
            lambda: files.exists(path),
            lambda: files.is_file(path),
            lambda: files.is_dir(path),
            lambda: files.read_bytes(path),
            lambda: files.list_dir(path),
            lambda: files.write_bytes(path, b"written"),
            lambda: files.read_bytes(path),
            lambda: files.delete(path),
        ]
        for method in methods:
            try:
                answer = method()
            except FilesystemError:  # and no other kind
                continue
            assert answer != OUTSIDE
            assert not isinstance(answer, tuple) or "root" not in answer
        assert everything_outside(base) == before


@settings(max_examples=examples(60), deadline=None)
@given(LINKED_PATHS)
def test_what_the_system_itself_would_open_inside_is_found_and_nothing_else(path: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        files = build(base)
        try:
            found = files.is_file(path)
        except FilesystemError:
            return
        spelled = "/".join(split_path(path)) or "."
        real = os.path.realpath(base / "root" / spelled)
        assert real == str(base / "root") or real.startswith(f"{base}/root/")
        assert found == os.path.isfile(base / "root" / spelled)


# --- both are the same

NAMES = st.sampled_from(["a", "b", "c.txt"])
SOME_PATHS = st.lists(st.one_of(NAMES, st.sampled_from([".", ".."])), min_size=1, max_size=4).map("/".join)
CONTENTS = st.binary(max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), SOME_PATHS, CONTENTS),
        st.tuples(st.sampled_from(["read", "text", "list", "exists", "is_file", "is_dir", "delete"]), SOME_PATHS),
    ),
    max_size=12,
)


def outcome(files: Filesystem, step: tuple[object, ...]) -> object:
    name, path, *data = step
    assert isinstance(path, str)
    methods: dict[object, Callable[..., object]] = {
        "write": files.write_bytes,
        "read": files.read_bytes,
        "text": files.read_text,
        "list": files.list_dir,
        "exists": files.exists,
        "is_file": files.is_file,
        "is_dir": files.is_dir,
        "delete": files.delete,
    }
    try:
        return methods[name](path, *data)
    except FilesystemError as error:
        return type(error)


def drop_empty_folders(root: Path) -> None:
    """In memory a directory is gone with its last file; that is the one difference there is."""
    for folder, _, _ in os.walk(root, topdown=False):
        if Path(folder) != root and not os.listdir(folder):
            os.rmdir(folder)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS)
def test_both_filesystems_answer_any_sequence_of_requests_alike(steps: list[tuple[object, ...]]) -> None:
    memory = InMemoryFilesystem()
    with tempfile.TemporaryDirectory() as name:
        host = HostFilesystem(name)
        for step in steps:
            assert outcome(memory, step) == outcome(host, step), step
            drop_empty_folders(Path(name))
