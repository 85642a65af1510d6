"""A file is the old one or the new one, whatever happens in between."""

from __future__ import annotations

import fcntl
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import donewhen
from donewhen.foundation.files import replace_in_directory, sweep_temporary_files, write_atomically
from sentences import assert_sentences

SOURCE = Path(donewhen.__file__).parents[1]


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """A real limit of the operating system: writing beyond it fails with EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_new_file_has_the_data_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one\r\n\x00")
    assert (tmp_path / "a").read_bytes() == b"one\r\n\x00"
    assert names_in(tmp_path) == ["a"]


@pytest.mark.parametrize("data", [b"", b"x", b"longer than before" * 1000])
def test_an_existing_file_is_replaced_as_a_whole(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"the old content")
    write_atomically(path, data)
    assert path.read_bytes() == data
    assert names_in(tmp_path) == ["a"]


def test_whoever_reads_the_old_file_goes_on_reading_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old" * 1000)
    with path.open("rb") as reader:
        first = reader.read(10)
        write_atomically(path, b"new")
        assert first + reader.read() == b"old" * 1000


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    contents = [letter * 300_000 for letter in (b"a", b"b", b"c")]
    write_atomically(path, contents[0])
    finished = threading.Event()
    strange: list[bytes] = []
    seen = 0

    def read() -> None:
        nonlocal seen
        while not finished.is_set():
            data = path.read_bytes()
            seen += 1
            if data not in contents:
                strange.append(data[:20])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(40):
            write_atomically(path, contents[number % 3])
    finally:
        finished.set()
        reader.join(30)
    assert strange == []
    assert seen > 0


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755, 0o444])
def test_an_existing_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new", mode=0o611)
    assert permissions(path) == mode
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_a_new_file_gets_the_permissions_asked_for(tmp_path: Path, mode: int) -> None:
    write_atomically(tmp_path / "a", b"new", mode=mode)
    assert permissions(tmp_path / "a") == mode


def test_a_new_file_is_readable_for_all_and_writable_for_its_owner_unless_told_otherwise(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "a", b"new")
    finally:
        os.umask(before)
    assert permissions(tmp_path / "a") == 0o644


def test_a_symlink_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "file"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to("real/file")
    write_atomically(link, b"new")
    assert os.readlink(link) == "real/file"
    assert target.read_bytes() == b"new"
    assert permissions(target) == 0o600
    assert names_in(tmp_path / "real") == ["file"]


def test_a_dangling_symlink_gets_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("later")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "later").read_bytes() == b"new"


def test_a_relative_path_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically(Path("a"), b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_symlink_that_leads_in_a_circle_is_an_os_error_and_stays(tmp_path: Path) -> None:
    link = tmp_path / "circle"
    link.symlink_to("circle")
    with pytest.raises(OSError, match="symbolic link"):
        write_atomically(link, b"new")
    assert os.readlink(link) == "circle"
    assert names_in(tmp_path) == ["circle"]


def test_a_link_in_the_place_of_the_file_is_replaced_and_lends_it_no_permissions(tmp_path: Path) -> None:
    # A link's own mode is 0777 on Linux; a file that anybody may write must not come of it.
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    (tmp_path / "name").symlink_to(victim)
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        replace_in_directory(directory, "name", b"new")
    finally:
        os.close(directory)
    assert victim.read_bytes() == b"untouched"
    assert not (tmp_path / "name").is_symlink()
    assert permissions(tmp_path / "name") == 0o644


@pytest.mark.parametrize("name", ["n" * 255, "文" * 85, "é" * 127, "👍" * 63], ids=["ascii", "cjk", "accents", "emoji"])
def test_the_longest_name_that_the_system_allows_can_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"old")
    write_atomically(tmp_path / name, b"new")
    assert (tmp_path / name).read_bytes() == b"new"
    assert len(names_in(tmp_path)) == 1


def test_a_missing_folder_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "missing" / "a", b"new")
    assert names_in(tmp_path) == []


def test_a_folder_is_not_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_bytes(b"kept")
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"new")
    assert names_in(tmp_path) == ["folder"]
    assert (tmp_path / "folder" / "inside").read_bytes() == b"kept"


def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    before = open_descriptors()
    with files_no_larger_than(1_000_000), pytest.raises(OSError) as caught:
        write_atomically(path, b"x" * 2_000_000)
    assert_sentences(caught.value)
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]
    assert open_descriptors() == before


def test_an_interrupted_write_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]


def test_the_data_is_on_disk_before_the_file_takes_its_name_and_the_name_is_on_disk_at_the_end(
    tmp_path: Path, real_fsync: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        steps.append("folder" if stat.S_ISDIR(found.st_mode) else f"file of {found.st_size}")
        real_fsync(descriptor)

    def replace(*arguments: object, **options: object) -> None:
        steps.append("replace")
        real_replace(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_atomically(tmp_path / "a", b"short")  # short enough to be still in a buffer
    assert steps == ["file of 5", "replace", "folder"]


def test_the_unfinished_file_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    real_fchmod = os.fchmod

    def fchmod(descriptor: int, mode: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        real_fchmod(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", fchmod)
    write_atomically(tmp_path / "a", b"secret")
    assert modes == [0o600]


def test_descriptors_are_closed(tmp_path: Path) -> None:
    before = open_descriptors()
    for number in range(5):
        write_atomically(tmp_path / "a", str(number).encode())
    assert open_descriptors() == before


def test_writers_in_several_threads_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    path = tmp_path / "a"
    contents = [bytes([65 + number]) * 10_000 for number in range(4)]
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def write(data: bytes) -> None:
        try:
            barrier.wait(30)
            for _ in range(25):
                write_atomically(path, data)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert path.read_bytes() in contents
    assert names_in(tmp_path) == ["a"]


WRITER = """
import sys
from pathlib import Path
from donewhen.foundation.files import write_atomically

path = Path(sys.argv[1])
contents = [letter * 400_000 for letter in (b"a", b"b", b"c")]
print("ready", flush=True)
while True:
    for data in contents:
        write_atomically(path, data)
"""


def killed_after(seconds: float, path: Path, script: str) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(seconds)
    finally:
        writer.kill()
        writer.communicate(timeout=30)
    assert writer.returncode == -signal.SIGKILL


def test_a_writer_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"first")
    allowed = [b"first", *(letter * 400_000 for letter in (b"a", b"b", b"c"))]
    chance: Callable[[], float] = random.Random(20).random
    for _ in range(20):
        killed_after(chance() / 50, path, WRITER)
        assert path.read_bytes() in allowed


# What killed writers leave behind

STRAY = ".donewhen-0123456789abcdef.tmp"


def test_the_next_write_to_a_folder_sweeps_what_a_killed_writer_left(tmp_path: Path) -> None:
    (tmp_path / STRAY).write_bytes(b"half")
    write_atomically(tmp_path / "a", b"new")
    assert names_in(tmp_path) == ["a"]


def test_a_writer_that_is_really_killed_leaves_a_file_that_is_swept(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from donewhen.foundation.files import write_atomically\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(Path(sys.argv[1]), b'new')\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")]).returncode == -signal.SIGKILL
    (left,) = names_in(tmp_path)
    assert left.startswith(".donewhen-")
    write_atomically(tmp_path / "b", b"new")
    assert names_in(tmp_path) == ["b"]


WAITING = """
import os, sys
from pathlib import Path
import donewhen.foundation.files as files
def waiting(_):
    files.os.fsync = lambda _: None
    print("writing", flush=True)
    sys.stdin.readline()
files.os.fsync = waiting
files.write_atomically(Path(sys.argv[1]), b"from the other")
"""


def test_the_file_of_a_writer_that_is_alive_is_left_alone_however_old_it_is(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WAITING, str(tmp_path / "a")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        (alive,) = names_in(tmp_path)
        os.utime(tmp_path / alive, (0, 0))
        write_atomically(tmp_path / "b", b"new")
        sweep_temporary_files(tmp_path)
        assert names_in(tmp_path) == sorted([alive, "b"])
        writer.stdin.write("\n")
    assert writer.returncode == 0
    assert (tmp_path / "a").read_bytes() == b"from the other"


def test_only_our_own_regular_files_are_swept(tmp_path: Path) -> None:
    kept = [
        ".donewhen-0123456789abcdef.new",
        ".donewhen-0123456789ABCDEF.tmp",
        ".donewhen-0123.tmp",
        ".donewhen-notes.tmp",
        "0123456789abcdef.tmp",
        "x.donewhen-0123456789abcdef.tmp",
    ]
    for name in kept:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".donewhen-1111111111111111.tmp").mkdir()
    (tmp_path / ".donewhen-2222222222222222.tmp").symlink_to("x")
    os.mkfifo(tmp_path / ".donewhen-3333333333333333.tmp")
    before = names_in(tmp_path)
    (tmp_path / STRAY).write_text("half")
    sweep_temporary_files(tmp_path)
    assert names_in(tmp_path) == before


def test_a_temporary_file_that_was_swept_before_its_lock_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, swept = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        if not swept and operation == fcntl.LOCK_EX:
            (name,) = names_in(tmp_path)
            swept.append(name)
            (tmp_path / name).unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomically(tmp_path / "a", b"new")
    assert len(swept) == 1
    assert (names_in(tmp_path), (tmp_path / "a").read_bytes()) == (["a"], b"new")


def test_a_folder_that_can_not_be_swept_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    (tmp_path / STRAY).write_bytes(b"half")
    monkeypatch.setattr(fcntl, "flock", refused)
    write_atomically(tmp_path / "a", b"new")
    assert names_in(tmp_path) == [STRAY, "a"]
