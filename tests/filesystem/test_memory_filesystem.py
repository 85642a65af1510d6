"""The filesystem in memory."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from donewhen.filesystem import FilesystemError, InMemoryFilesystem, PathEscapeError


@pytest.fixture
def busy_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(*works: Callable[[], None]) -> None:
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            barrier.wait(30)
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_it_can_be_made_with_files_as_text_or_bytes():
    files = InMemoryFilesystem({"a.txt": "text é", "d/b.bin": b"\xff"})
    assert files.read_text("a.txt") == "text é"
    assert files.read_bytes("d/b.bin") == b"\xff"


@pytest.mark.parametrize(
    ("files", "error"),
    [
        ({"../a": ""}, PathEscapeError),
        ({"/a": ""}, PathEscapeError),
        ({"": ""}, FilesystemError),
        ({"a": "", "a/b": ""}, FilesystemError),
        ({"a/b": "", "a": ""}, FilesystemError),
        ({"a": "\ud800"}, FilesystemError),
    ],
)
def test_it_can_not_be_made_with_files_that_can_not_be(files: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        InMemoryFilesystem(files)


def test_it_does_not_follow_the_mapping_it_was_made_from():
    source: dict[str, str | bytes] = {"a": "one"}
    files = InMemoryFilesystem(source)
    source["b"] = "two"
    files.write_text("a", "changed")
    assert files.list_dir() == ("a",)
    assert source == {"a": "one", "b": "two"}


def test_two_of_them_share_nothing():
    one, other = InMemoryFilesystem(), InMemoryFilesystem()
    one.write_text("a", "")
    assert not other.exists("a")


def test_a_directory_is_gone_with_its_last_file():
    files = InMemoryFilesystem({"d/a": "", "d/b": ""})
    files.delete("d/a")
    assert files.is_dir("d")
    files.delete("d/b")
    assert not files.exists("d")
    files.write_text("d", "a file now")
    assert files.is_file("d")


def test_names_that_begin_alike_are_not_below_each_other():
    files = InMemoryFilesystem({"ab/c": ""})
    assert not files.exists("a")
    files.write_text("a", "")
    assert files.list_dir() == ("a", "ab")


def test_threads_that_write_list_and_delete_lose_nothing(busy_threads: None) -> None:
    files = InMemoryFilesystem({f"z/{number}": "" for number in range(300)})

    def writing(number: int) -> Callable[[], None]:
        def work() -> None:
            for position in range(150):
                files.write_text(f"d{number}/{position}", str(position))
                files.write_text(f"d{number}/gone", "")
                files.delete(f"d{number}/gone")

        return work

    def listing() -> None:
        for _ in range(150):
            files.list_dir()
            files.is_dir("d0")
            files.exists("nowhere/at/all")

    in_threads(writing(0), writing(1), listing, listing)
    assert files.list_dir() == ("d0", "d1", "z")
    for number in (0, 1):
        assert len(files.list_dir(f"d{number}")) == 150
        assert files.read_text(f"d{number}/149") == "149"


class Overtaken:
    """A lock before which, the n-th time it is taken, somebody else is quicker and does something first."""

    def __init__(self, turn: int, something: Callable[[], object]) -> None:
        self._lock = threading.RLock()
        self._turn = turn
        self._something = something

    def __enter__(self) -> None:
        self._turn -= 1
        if self._turn == 0:
            self._something()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def done(work: Callable[[], object]) -> bool:
    try:
        work()
    except FilesystemError:
        return False
    return True


@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize(("mine", "theirs"), [("a", "a/b"), ("a/b", "a")])
def test_a_path_never_becomes_a_file_and_a_directory_at_once(mine: str, theirs: str, turn: int) -> None:
    files = InMemoryFilesystem()
    files._lock = Overtaken(turn, lambda: done(lambda: files.write_text(theirs, "")))  # type: ignore[assignment]
    done(lambda: files.write_text(mine, ""))
    assert files.is_file("a") is not files.is_dir("a")


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_of_two_who_delete_one_file_only_one_has_deleted_it(turn: int) -> None:
    files = InMemoryFilesystem({"a": ""})
    deleted: list[bool] = []
    files._lock = Overtaken(turn, lambda: deleted.append(done(lambda: files.delete("a"))))  # type: ignore[assignment]
    deleted.append(done(lambda: files.delete("a")))
    assert sum(deleted) == 1
    assert not files.exists("a")
