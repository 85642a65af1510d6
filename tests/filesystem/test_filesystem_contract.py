"""What every filesystem does: the same tests for the one in memory and the one on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.filesystem import Filesystem, FilesystemError, HostFilesystem, InMemoryFilesystem, PathEscapeError
from donewhen.foundation.errors import DonewhenError
from sentences import assert_sentences

METHODS: dict[str, Callable[[Filesystem, str], object]] = {
    "exists": lambda files, path: files.exists(path),
    "is_file": lambda files, path: files.is_file(path),
    "is_dir": lambda files, path: files.is_dir(path),
    "read_bytes": lambda files, path: files.read_bytes(path),
    "read_text": lambda files, path: files.read_text(path),
    "write_bytes": lambda files, path: files.write_bytes(path, b"new"),
    "write_text": lambda files, path: files.write_text(path, "new"),
    "list_dir": lambda files, path: files.list_dir(path),
    "delete": lambda files, path: files.delete(path),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


@pytest.fixture(params=["memory", "host"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Filesystem:
    if request.param == "memory":
        return InMemoryFilesystem()
    (tmp_path / "root").mkdir()
    return HostFilesystem(tmp_path / "root")


def test_it_satisfies_the_protocol(files: Filesystem) -> None:
    assert isinstance(files, Filesystem)


# --- writing and reading


@pytest.mark.parametrize(
    "data", [b"", b"text\n", b"\x00\xff\r\n", b"x" * 300_000], ids=["empty", "text", "any", "long"]
)
def test_bytes_come_back_as_they_were_written(files: Filesystem, data: bytes) -> None:
    files.write_bytes("a", data)
    assert files.read_bytes("a") == data


@pytest.mark.parametrize("text", ["", "one\ntwo\n", "one\r\ntwo\r", "日本語 👍 é", "\ufeffbom", "nul\0"])
def test_text_comes_back_as_it_was_written(files: Filesystem, text: str) -> None:
    files.write_text("a", text)
    assert files.read_text("a") == text
    assert files.read_bytes("a") == text.encode()


def test_writing_again_replaces_the_whole_content(files: Filesystem) -> None:
    files.write_text("a", "a long first version")
    files.write_text("a", "short")
    assert files.read_text("a") == "short"
    assert files.list_dir() == ("a",)


def test_a_buffer_that_changes_after_writing_does_not_change_the_file(files: Filesystem) -> None:
    buffer = bytearray(b"before")
    files.write_bytes("a", buffer)
    buffer[:] = b"after!"
    assert files.read_bytes("a") == b"before"
    assert type(files.read_bytes("a")) is bytes


def test_missing_directories_are_made_on_writing(files: Filesystem) -> None:
    files.write_text("a/b/c.txt", "deep")
    assert files.read_text("a/b/c.txt") == "deep"
    assert files.is_dir("a")
    assert files.is_dir("a/b")
    files.write_text("a/b/d.txt", "beside")
    assert files.list_dir("a/b") == ("c.txt", "d.txt")


@pytest.mark.parametrize(
    "name",
    [
        "with space", "-rf", "--", "two\nlines", "tab\there", "back\\slash", "...", "..a", "a..", ".hidden", "~",
        "$HOME", "*", "?", "'", '"', "C:", "con", "naïve", "日本語", "👍", "a\u202eb", "\x01", "_", "\u00a0",
    ],
    ids=ascii,
)  # fmt: skip
def test_an_unusual_name_is_a_name_like_any_other(files: Filesystem, name: str) -> None:
    files.write_text(f"folder/{name}", "in a folder")
    files.write_text(name, "at the root")
    assert files.read_text(name) == "at the root"
    assert files.read_text(f"folder/{name}") == "in a folder"
    assert len(files.list_dir("folder")) == 1
    files.delete(name)
    assert not files.exists(name)
    assert files.is_file(f"folder/{name}")


@pytest.mark.parametrize("name", ["n" * 255, "文" * 85, "👍" * 63], ids=["ascii", "cjk", "emoji"])
def test_the_longest_name_that_the_system_allows_works(files: Filesystem, name: str) -> None:
    files.write_text(name, "first")
    files.write_text(name, "second")
    assert files.read_text(name) == "second"
    assert files.list_dir() == (name,)


@pytest.mark.parametrize(
    "spelling", ["a/b.txt", "./a/b.txt", "a//b.txt", "a/./b.txt", "a/c/../b.txt", "x/../a/b.txt", "a/b.txt/"]
)
def test_different_spellings_of_a_path_are_one_file(files: Filesystem, spelling: str) -> None:
    files.write_text("a/b.txt", "old")
    files.write_text(spelling, "new")
    assert files.read_text("a/b.txt") == files.read_text(spelling) == "new"
    assert files.is_file(spelling)
    assert files.list_dir("a") == ("b.txt",)
    assert files.list_dir() == ("a",)
    files.delete(spelling)
    assert not files.exists("a/b.txt")


# --- what is there


@pytest.mark.parametrize(
    ("path", "file", "directory"),
    [
        ("a.txt", True, False),
        ("empty", True, False),
        ("d/b.txt", True, False),
        ("d", False, True),
        ("d/", False, True),
        (".", False, True),
        ("d/..", False, True),
        ("missing", False, False),
        ("d/missing", False, False),
        ("missing/missing", False, False),
        ("a.txt/below", False, False),
        ("a", False, False),
        ("d/b.tx", False, False),
    ],
)
def test_files_directories_and_nothing_are_told_apart(
    files: Filesystem, path: str, file: bool, directory: bool
) -> None:
    for name in ("a.txt", "empty", "d/b.txt"):
        files.write_text(name, "" if name == "empty" else "x")
    assert (files.is_file(path), files.is_dir(path), files.exists(path)) == (file, directory, file or directory)


def test_an_empty_filesystem_has_a_root_and_nothing_in_it(files: Filesystem) -> None:
    assert files.list_dir() == files.list_dir(".") == ()
    assert files.is_dir(".")
    assert not files.is_file(".")


def test_names_are_listed_sorted_and_only_those_of_the_directory(files: Filesystem) -> None:
    for path in ("b", "a/z", "a/y/x", "c", "a.txt", "ab/c"):
        files.write_text(path, "")
    assert files.list_dir() == ("a", "a.txt", "ab", "b", "c")
    assert files.list_dir("a") == ("y", "z")
    assert files.list_dir("a/y") == ("x",)


# --- what can't be done


def refused(files: Filesystem, method: str, path: str) -> FilesystemError:
    with pytest.raises(FilesystemError) as caught:
        METHODS[method](files, path)
    assert not isinstance(caught.value, PathEscapeError)
    assert isinstance(caught.value, DonewhenError)
    return caught.value


@pytest.mark.parametrize("method", ["read_bytes", "read_text", "delete", "list_dir"])
@pytest.mark.parametrize("path", ["missing", "d/missing", "missing/below"])
def test_what_is_not_there_can_not_be_read_listed_or_deleted(files: Filesystem, method: str, path: str) -> None:
    files.write_text("d/a", "")
    assert_sentences(refused(files, method, path))


@pytest.mark.parametrize("method", ["read_bytes", "read_text", "write_bytes", "write_text", "delete"])
@pytest.mark.parametrize("path", ["d", "d/e", "."])
def test_a_directory_is_not_a_file(files: Filesystem, method: str, path: str) -> None:
    files.write_text("d/e/a", "kept")
    assert_sentences(refused(files, method, path))
    assert files.read_text("d/e/a") == "kept"
    assert files.list_dir() == ("d",)


def test_a_file_is_not_a_directory_to_list(files: Filesystem) -> None:
    files.write_text("a", "")
    assert_sentences(refused(files, "list_dir", "a"))


@pytest.mark.parametrize("method", ["read_bytes", "read_text", "write_bytes", "write_text", "delete", "list_dir"])
@pytest.mark.parametrize("path", ["a/below", "a/below/that"])
def test_there_is_nothing_below_a_file(files: Filesystem, method: str, path: str) -> None:
    files.write_text("a", "kept")
    refused(files, method, path)
    assert files.read_text("a") == "kept"
    assert files.list_dir() == ("a",)


def test_deleting_removes_the_file_and_nothing_else(files: Filesystem) -> None:
    for path in ("d/a", "d/b", "a"):
        files.write_text(path, path)
    files.delete("d/a")
    assert not files.exists("d/a")
    assert files.list_dir("d") == ("b",)
    assert files.read_text("a") == "a"
    refused(files, "delete", "d/a")


def test_a_deleted_file_can_be_written_again(files: Filesystem) -> None:
    files.write_text("a", "one")
    files.delete("a")
    files.write_text("a", "two")
    assert files.read_text("a") == "two"


def test_bytes_that_are_not_text_are_said_to_be_so_with_their_place(files: Filesystem) -> None:
    files.write_bytes("d/a", b"ab\xffcd")
    message = str(refused(files, "read_text", "d/a"))
    assert "'d/a'" in message
    assert "UTF-8" in message
    assert "byte 2" in message


def test_text_that_can_not_be_encoded_is_refused_and_the_old_file_stays(files: Filesystem) -> None:
    # JSON can say "\ud800"; whatever an agent sends must not surface as an error of another kind.
    files.write_text("a", "old")
    with pytest.raises(FilesystemError):
        files.write_text("a", "lone \ud800 surrogate")
    with pytest.raises(FilesystemError):
        files.write_text("new", "\udfff")
    assert files.read_text("a") == "old"
    assert files.list_dir() == ("a",)


LEADING_OUT = ["..", "../a", "../root/a", "d/../../a", "d/../..", "./..", "../../../../etc/passwd", "d/../../root/a"]
ABSOLUTE = ["/", "/etc/passwd", "//a", "/.", "/.."]
IMPOSSIBLE = ["", "a\0b", "\0", "a/\0", "\ud800", "a/\udc80b", "\udfff"]
NO_TEXT = [None, b"a", 3, Path("a"), ["a"]]


@every_method
def test_a_path_that_leads_out_is_refused_by_every_method(
    files: Filesystem, method: Callable[[Filesystem, str], object]
) -> None:
    files.write_text("a", "kept")
    files.write_text("d/b", "kept")
    for path in LEADING_OUT:
        with pytest.raises(PathEscapeError) as caught:
            method(files, path)
        assert repr(path) in str(caught.value)
        assert caught.value.code == "path_escape"
    assert files.read_text("a") == "kept"


@every_method
def test_an_absolute_path_is_refused_by_every_method(
    files: Filesystem, method: Callable[[Filesystem, str], object]
) -> None:
    for path in ABSOLUTE:
        with pytest.raises(PathEscapeError) as caught:
            method(files, path)
        assert_sentences(caught.value)


@every_method
def test_a_path_that_no_file_can_have_is_refused_by_every_method(
    files: Filesystem, method: Callable[[Filesystem, str], object]
) -> None:
    for path in IMPOSSIBLE:
        with pytest.raises(FilesystemError) as caught:
            method(files, path)
        assert not isinstance(caught.value, PathEscapeError)
        str(caught.value).encode()  # whoever shows it must be able to


@every_method
def test_a_path_that_is_no_text_is_refused_by_every_method(
    files: Filesystem, method: Callable[[Filesystem, object], object]
) -> None:
    for path in NO_TEXT:
        with pytest.raises(FilesystemError) as caught:
            method(files, path)
        assert_sentences(caught.value)


def test_an_escape_is_an_error_of_the_filesystem() -> None:
    assert issubclass(PathEscapeError, FilesystemError)
    assert issubclass(FilesystemError, DonewhenError)
