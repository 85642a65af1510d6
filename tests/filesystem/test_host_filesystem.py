"""A folder of this machine that can't be left: links, races, strange files, missing rights, interrupted writes."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import donewhen
from donewhen.filesystem import FilesystemError, HostFilesystem, PathEscapeError
from sentences import assert_sentences

SOURCE = Path(donewhen.__file__).parents[1]
SECRET = "the secret outside"

METHODS: dict[str, Callable[[HostFilesystem, str], object]] = {
    "exists": lambda files, path: files.exists(path),
    "is_file": lambda files, path: files.is_file(path),
    "is_dir": lambda files, path: files.is_dir(path),
    "read_bytes": lambda files, path: files.read_bytes(path),
    "read_text": lambda files, path: files.read_text(path),
    "write_bytes": lambda files, path: files.write_bytes(path, b"overwritten"),
    "write_text": lambda files, path: files.write_text(path, "overwritten"),
    "list_dir": lambda files, path: files.list_dir(path),
    "delete": lambda files, path: files.delete(path),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
every_method_that_follows = pytest.mark.parametrize(
    "method",
    [method for name, method in METHODS.items() if name != "delete"],
    ids=[name for name in METHODS if name != "delete"],
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root, whose name even begins like the root's."""
    folder = tmp_path / "root-and-more"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


@pytest.fixture
def files(root: Path) -> HostFilesystem:
    return HostFilesystem(root)


def assert_untouched(outside: Path) -> None:
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == SECRET


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the root


@pytest.mark.parametrize("kind", ["missing", "file", "circle", "nul", "too long"])
def test_a_root_that_is_no_folder_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to("circle")
    name = {"nul": "a\0b", "too long": "x" * 300}.get(kind, kind)
    with pytest.raises(FilesystemError) as caught:
        HostFilesystem(tmp_path / name)
    assert_sentences(caught.value)


def test_the_root_may_be_given_as_text_or_path_and_relative(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a").write_text("x")
    monkeypatch.chdir(root.parent)
    files = HostFilesystem("root")
    assert files.root == root.resolve()
    monkeypatch.chdir("/")
    assert files.read_text("a") == "x"
    assert HostFilesystem(str(root)).root == HostFilesystem(root).root
    text = repr(files)
    assert f"{str(root.resolve())!r}" in text
    assert_sentences(text)


def test_a_root_that_is_a_symlink_works_and_is_resolved(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("root")
    files = HostFilesystem(tmp_path / "link")
    files.write_text("d/a", "x")
    assert (root / "d" / "a").read_text() == "x"
    assert files.root == root.resolve()


def test_the_whole_machine_can_be_the_root() -> None:
    files = HostFilesystem("/")
    assert files.is_dir("dev")
    assert files.is_file("etc/passwd")
    assert "dev" in files.list_dir()
    with pytest.raises(PathEscapeError):
        files.exists("..")


@every_method
def test_a_root_that_has_gone_is_an_error_or_holds_nothing(
    root: Path, files: HostFilesystem, method: Callable[[HostFilesystem, str], object]
) -> None:
    root.rmdir()
    with suppress(FilesystemError):
        assert method(files, "a") is False
    assert not root.exists()


@every_method
def test_a_root_swapped_for_a_symlink_to_elsewhere_is_refused(
    root: Path, outside: Path, files: HostFilesystem, method: Callable[[HostFilesystem, str], object]
) -> None:
    root.rmdir()
    root.symlink_to(outside)
    with pytest.raises(FilesystemError):
        method(files, "secret")
    assert_untouched(outside)


# --- links that lead out


OUTWARD: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "an absolute link to a file": (lambda root, outside: (root / "l").symlink_to(outside / "secret"), "l"),
    "a relative link to a file": (lambda root, outside: (root / "l").symlink_to("../root-and-more/secret"), "l"),
    "an absolute link to a folder": (lambda root, outside: (root / "l").symlink_to(outside), "l/secret"),
    "a relative link to a folder": (lambda root, outside: (root / "l").symlink_to("../root-and-more"), "l/secret"),
    "the folder itself": (lambda root, outside: (root / "l").symlink_to(outside), "l"),
    "a link to the parent": (lambda root, outside: (root / "l").symlink_to(".."), "l/root-and-more/secret"),
    "a link to the top": (lambda root, outside: (root / "l").symlink_to("/"), "l/etc/passwd"),
    "a dangling link": (lambda root, outside: (root / "l").symlink_to(outside / "missing"), "l"),
    "a dangling link to a folder": (lambda root, outside: (root / "l").symlink_to("../missing"), "l/deeper/file"),
    "a link in a folder": (
        lambda root, outside: ((root / "d").mkdir(), (root / "d/l").symlink_to("../../root-and-more")),
        "d/l/secret",
    ),
    "a chain of links": (
        lambda root, outside: (
            (root / "l").symlink_to("m"),
            (root / "m").symlink_to("n"),
            (root / "n").symlink_to(outside / "secret"),
        ),
        "l",
    ),
    "a chain through folders": (
        lambda root, outside: (
            (root / "d").mkdir(),
            (root / "d/up").symlink_to(".."),
            (root / "l").symlink_to("d/up/.."),
        ),
        "l/root-and-more/secret",
    ),
    "a chain that goes on outside": (
        lambda root, outside: ((outside.parent / "back").symlink_to(outside), (root / "l").symlink_to("../back")),
        "l/secret",
    ),
}


@every_method_that_follows
@pytest.mark.parametrize(("prepare", "path"), OUTWARD.values(), ids=OUTWARD.keys())
def test_a_link_that_leads_out_is_refused_by_every_method(
    root: Path,
    outside: Path,
    files: HostFilesystem,
    method: Callable[[HostFilesystem, str], object],
    prepare: Callable[[Path, Path], object],
    path: str,
) -> None:
    prepare(root, outside)
    with pytest.raises(PathEscapeError) as caught:
        method(files, path)
    assert repr(path) in str(caught.value)
    assert SECRET not in str(caught.value)
    assert_untouched(outside)
    assert not (root.parent / "missing").exists()


@pytest.mark.parametrize("target", ["../root-and-more", ".."])
def test_nothing_is_deleted_through_a_folder_that_leads_out(
    root: Path, outside: Path, files: HostFilesystem, target: str
) -> None:
    (root / "l").symlink_to(target)
    path = "l/secret" if target != ".." else "l/root-and-more/secret"
    with pytest.raises(PathEscapeError) as caught:
        files.delete(path)
    assert repr(path) in str(caught.value)
    assert_untouched(outside)


def test_deleting_a_link_removes_the_link_and_not_what_it_points_to(
    root: Path, outside: Path, files: HostFilesystem
) -> None:
    files.write_text("kept", "x")
    for name, target in {"inside": "kept", "out": outside / "secret", "folder": outside, "dangling": "no"}.items():
        (root / name).symlink_to(target)
        files.delete(name)
        assert not (root / name).is_symlink()
    assert files.list_dir() == ("kept",)
    assert_untouched(outside)


# --- links that stay inside


def test_links_that_stay_inside_work(root: Path, files: HostFilesystem) -> None:
    files.write_text("d/e/file", "content")
    (root / "relative").symlink_to("d/e/file")
    (root / "absolute").symlink_to(root / "d" / "e")
    (root / "d" / "up").symlink_to("..")
    (root / "chain").symlink_to("relative")
    for path in ("relative", "absolute/file", "d/up/d/e/file", "chain", "d/up/chain"):
        assert files.read_text(path) == "content"
        assert files.is_file(path)
        assert files.exists(path)
    assert files.is_dir("absolute")
    assert files.list_dir("absolute") == ("file",)
    assert files.list_dir("d/up") == ("absolute", "chain", "d", "relative")


def test_a_link_that_goes_out_and_comes_back_in_stays_inside(root: Path, files: HostFilesystem) -> None:
    files.write_text("file", "content")
    (root / "l").symlink_to("../root/file")
    assert files.read_text("l") == "content"


def test_a_long_chain_of_links_inside_works(root: Path, files: HostFilesystem) -> None:
    files.write_text("0", "content")
    for number in range(1, 30):
        (root / str(number)).symlink_to(str(number - 1))
    assert files.read_text("29") == "content"


def test_writing_through_a_link_inside_replaces_its_target_and_keeps_the_link(
    root: Path, files: HostFilesystem
) -> None:
    files.write_text("d/file", "old")
    (root / "d" / "file").chmod(0o600)
    (root / "l").symlink_to("d/file")
    (root / "folder").symlink_to("d")
    files.write_text("l", "new")
    assert os.readlink(root / "l") == "d/file"
    assert files.read_text("d/file") == "new"
    assert permissions(root / "d" / "file") == 0o600
    files.write_text("folder/other", "beside")
    assert (root / "folder").is_symlink()
    assert files.list_dir("d") == ("file", "other")


def test_writing_through_a_dangling_link_inside_makes_its_target(root: Path, files: HostFilesystem) -> None:
    (root / "l").symlink_to("new/file")
    assert not files.exists("l")
    files.write_text("l", "content")
    assert (root / "new" / "file").read_text() == "content"
    assert (root / "l").is_symlink()


def test_a_link_that_leads_in_a_circle_is_not_there(root: Path, files: HostFilesystem) -> None:
    (root / "circle").symlink_to("circle")
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    for path in ("circle", "a"):
        assert files.exists(path) is False
        assert files.is_file(path) is False
        assert files.is_dir(path) is False


@pytest.mark.parametrize("method", ["read_text", "write_text", "list_dir"])
@pytest.mark.parametrize("path", ["circle", "circle/below"])
def test_a_link_that_leads_in_a_circle_can_not_be_used(
    root: Path, files: HostFilesystem, method: str, path: str
) -> None:
    (root / "circle").symlink_to("circle")
    with pytest.raises(FilesystemError):
        METHODS[method](files, path)
    assert os.readlink(root / "circle") == "circle"
    assert os.listdir(root) == ["circle"]


@pytest.mark.parametrize("target", ["other/name", "../root-and-more/secret", "other", "_"])
@pytest.mark.parametrize("folder", [".", "d"])
def test_deleting_is_not_led_astray_by_a_link_beside_the_file(
    root: Path, outside: Path, files: HostFilesystem, folder: str, target: str
) -> None:
    for path in (f"{folder}/file", f"{folder}/other/file", "other/file", "file"):
        files.write_text(path, "x")
    (root / folder / "_").symlink_to(target)
    files.delete(f"{folder}/file")
    assert not (root / folder / "file").exists()
    assert (root / folder / "other" / "file").exists()
    assert (root / "other" / "file").exists()
    assert (root / "file").exists() is (folder != ".")
    assert_untouched(outside)


# --- links swapped in between the look and the deed


class Swap:
    """Lets somebody do something at the worst moment: right after a path was resolved, before it is used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.done = False

    def after_resolving(self, deed: Callable[[], object], turn: int = 1) -> None:
        """Do it after a path was resolved for the turn-th time from now."""
        real = os.path.realpath
        left = turn

        def realpath(*arguments: object, **options: object) -> object:
            nonlocal left
            resolved = real(*arguments, **options)  # type: ignore[call-overload]
            left -= 1
            if left == 0:
                deed()
                self.done = True
            return resolved

        self._monkeypatch.setattr(os.path, "realpath", realpath)


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> Swap:
    return Swap(monkeypatch)


@every_method
@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize("path", ["d", "d/secret"])
def test_a_folder_swapped_for_a_link_after_the_check_is_refused(
    root: Path,
    outside: Path,
    files: HostFilesystem,
    swap: Swap,
    method: Callable[[HostFilesystem, str], object],
    turn: int,
    path: str,
) -> None:
    files.write_text("d/secret", "inside")
    (outside / "only-outside").touch()

    def deed() -> None:
        os.rename(root / "d", root / "moved")
        (root / "d").symlink_to(outside)

    swap.after_resolving(deed, turn)
    try:
        answer = method(files, path)
    except FilesystemError:
        pass
    else:
        # Whoever was asked before the swap may answer with what was there then.
        assert answer in (None, False, "inside", b"inside", ("secret",)) or (answer is True and not swap.done)
    assert sorted(os.listdir(outside)) == ["only-outside", "secret"]
    assert (outside / "secret").read_text() == SECRET


@every_method
@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_file_swapped_for_a_link_after_the_check_is_never_followed(
    root: Path,
    outside: Path,
    files: HostFilesystem,
    swap: Swap,
    method: Callable[[HostFilesystem, str], object],
    turn: int,
) -> None:
    files.write_text("file", "inside")

    def deed() -> None:
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")

    swap.after_resolving(deed, turn)
    try:
        answer = method(files, "file")
    except FilesystemError:
        pass
    else:
        assert answer in (None, False, True, "inside", b"inside")
    assert_untouched(outside)


def test_a_link_swapped_in_is_no_file(root: Path, outside: Path, files: HostFilesystem, swap: Swap) -> None:
    files.write_text("file", "inside")

    def deed() -> None:
        (root / "file").unlink()
        (root / "file").symlink_to(outside / "secret")

    swap.after_resolving(deed)
    assert files.is_file("file") is False


@pytest.mark.parametrize("turn", [1, 2, 3])
def test_a_folder_that_appears_as_a_link_while_it_is_to_be_made_is_refused(
    root: Path, outside: Path, files: HostFilesystem, swap: Swap, turn: int
) -> None:
    def deed() -> None:
        if (root / "new").exists():
            os.rename(root / "new", root / "moved")
        (root / "new").symlink_to(outside)

    swap.after_resolving(deed, turn)
    try:
        files.write_text("new/file", "x")
    except FilesystemError:
        pass
    else:
        assert turn > 1
    assert_untouched(outside)


def test_while_another_thread_swaps_folder_and_link_nothing_outside_is_read_or_written(
    root: Path, outside: Path, files: HostFilesystem
) -> None:
    files.write_text("d/secret", "inside")
    (outside / "only-outside").touch()
    finished = threading.Event()

    def swapping() -> None:
        while not finished.is_set():
            os.rename(root / "d", root / "moved")
            # The writer may be quicker, and make the folder anew.
            with suppress(FileExistsError):
                (root / "d").symlink_to(outside)
                (root / "d").unlink()
            while (root / "moved").exists():
                shutil.rmtree(root / "d", ignore_errors=True)
                with suppress(OSError):
                    os.rename(root / "moved", root / "d")

    thread = threading.Thread(target=swapping)
    thread.start()
    seen: set[str] = set()
    try:
        for number in range(250):
            try:
                seen.add(files.read_text("d/secret"))
                if number % 4 == 0:
                    files.write_text("d/secret", "inside")
                seen.update(files.list_dir("d"))
            except FilesystemError:
                pass
    finally:
        finished.set()
        thread.join(30)
    assert seen <= {"inside", "secret"}
    assert sorted(os.listdir(outside)) == ["only-outside", "secret"]
    assert (outside / "secret").read_text() == SECRET


# --- things that are no files


def test_a_named_pipe_does_not_hang_anybody_and_is_no_file(root: Path, files: HostFilesystem) -> None:
    os.mkfifo(root / "pipe")
    assert files.is_file("pipe") is False
    assert files.is_dir("pipe") is False
    for method in ("read_bytes", "read_text", "write_bytes", "write_text"):
        with pytest.raises(FilesystemError) as caught:
            METHODS[method](files, "pipe")
        assert_sentences(caught.value)
    with pytest.raises(FilesystemError):
        files.list_dir("pipe")
    assert stat.S_ISFIFO((root / "pipe").lstat().st_mode)
    assert os.listdir(root) == ["pipe"]


def test_a_link_to_a_named_pipe_inside_is_no_file_either(root: Path, files: HostFilesystem) -> None:
    os.mkfifo(root / "pipe")
    (root / "l").symlink_to("pipe")
    assert files.is_file("l") is False
    with pytest.raises(FilesystemError) as caught:
        files.read_bytes("l")
    assert_sentences(caught.value)


def test_a_file_swapped_for_a_named_pipe_after_the_check_does_not_hang_the_reader(
    root: Path, files: HostFilesystem, swap: Swap
) -> None:
    files.write_text("file", "x")

    def deed() -> None:
        (root / "file").unlink()
        os.mkfifo(root / "file")

    swap.after_resolving(deed)
    with pytest.raises(FilesystemError) as caught:
        files.read_bytes("file")
    assert_sentences(caught.value)


def test_a_socket_is_no_file(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{name}/s")  # a short path: sockets allow about a hundred characters
        files = HostFilesystem(name)
        assert files.is_file("s") is False
        with pytest.raises(FilesystemError):
            files.read_bytes("s")
        with pytest.raises(FilesystemError) as caught:
            files.write_bytes("s", b"")
        assert_sentences(caught.value)


def test_a_device_is_no_file() -> None:
    files = HostFilesystem("/dev")
    assert files.exists("null")
    assert files.is_file("null") is False
    for method in ("read_bytes", "read_text", "write_bytes", "write_text"):
        with pytest.raises(FilesystemError) as caught:
            METHODS[method](files, "null")
        assert_sentences(caught.value)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("method", METHODS.keys())
@pytest.mark.parametrize("kind", ["missing", "file", "folder", "pipe", "out", "below a file"])
def test_no_method_leaves_a_descriptor_open(
    root: Path, outside: Path, files: HostFilesystem, method: str, kind: str
) -> None:
    files.write_text("file", "x")
    files.write_text("folder/inside", "x")
    os.mkfifo(root / "pipe")
    (root / "out").symlink_to(outside)
    path = {"below a file": "file/below"}.get(kind, kind)
    before = open_descriptors()
    for _ in range(3):
        with suppress(FilesystemError):
            METHODS[method](files, path)
    assert open_descriptors() == before


# --- names


@every_method
@pytest.mark.parametrize("path", ["x" * 256, f"d/{'文' * 86}", f"{'x' * 256}/below"], ids=["name", "wide", "folder"])
def test_a_name_that_is_too_long_is_refused_or_is_simply_not_there(
    root: Path, files: HostFilesystem, method: Callable[[HostFilesystem, str], object], path: str
) -> None:
    try:
        assert method(files, path) is False
    except FilesystemError as error:
        assert not isinstance(error, PathEscapeError)
    assert [name for name in os.listdir(root) if name != "d"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="macOS refuses such names itself")
def test_a_name_that_is_not_utf_8_does_not_break_the_listing(root: Path, files: HostFilesystem) -> None:
    with open(os.fsencode(root) + b"/\xff", "wb"):
        pass
    files.write_text("a", "")
    assert len(files.list_dir()) == 2
    assert files.list_dir()[0] == "a"


# --- writing is all or nothing


def test_a_file_is_replaced_and_not_written_into(root: Path, files: HostFilesystem) -> None:
    files.write_text("d/file", "old content")
    with (root / "d" / "file").open() as reader:
        assert reader.read(3) == "old"
        files.write_text("d/file", "new")
        assert reader.read() == " content"
    assert files.list_dir("d") == ("file",)


def test_a_hard_link_outside_keeps_the_old_content(root: Path, outside: Path, files: HostFilesystem) -> None:
    os.link(outside / "secret", root / "file")
    files.write_text("file", "new")
    assert files.read_text("file") == "new"
    assert_untouched(outside)


def test_a_reader_never_sees_half_a_file(root: Path, files: HostFilesystem) -> None:
    contents = {letter * 200_000 for letter in "abc"}
    files.write_text("file", "a" * 200_000)
    finished = threading.Event()
    strange: list[str] = []

    def reading() -> None:
        while not finished.is_set():
            if (text := files.read_text("file")) not in contents:
                strange.append(text[:20])

    thread = threading.Thread(target=reading)
    thread.start()
    try:
        for _ in range(8):
            for text in contents:
                files.write_text("file", text)
    finally:
        finished.set()
        thread.join(30)
    assert strange == []
    assert files.list_dir() == ("file",)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(root: Path, files: HostFilesystem) -> None:
    files.write_text("d/file", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(FilesystemError) as caught:
            files.write_bytes("d/file", b"x" * 2_000_000)
        assert_sentences(caught.value)
        with pytest.raises(FilesystemError) as caught:
            files.write_bytes("d/new", b"x" * 2_000_000)
        assert_sentences(caught.value)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files.read_text("d/file") == "old"
    assert os.listdir(root / "d") == ["file"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_an_existing_file_keeps_its_permissions(root: Path, files: HostFilesystem, mode: int) -> None:
    files.write_text("file", "#!/bin/sh\n")
    (root / "file").chmod(mode)
    files.write_text("file", "#!/bin/sh\nexit 0\n")
    assert permissions(root / "file") == mode


def test_a_new_file_is_an_ordinary_one(root: Path, files: HostFilesystem) -> None:
    before = os.umask(0o022)
    try:
        files.write_text("d/file", "")
    finally:
        os.umask(before)
    assert permissions(root / "d" / "file") == 0o644
    assert permissions(root / "d") == 0o755


# --- missing rights


AS_A_NORMAL_USER = """
import os
from pathlib import Path
from donewhen.filesystem import FilesystemError, HostFilesystem
from donewhen.foundation import files, process

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
here = Path.cwd()
for name in ("closed", "readonly"):
    (here / name).mkdir()
    (here / name / "file").write_text("kept")
(here / "unreadable").write_text("kept")
(here / "unreadable").chmod(0)
(here / "closed").chmod(0)
(here / "readonly").chmod(0o555)
host = HostFilesystem(here)
attempts = {
    "exists below closed": lambda: host.exists("closed/file"),
    "is_file below closed": lambda: host.is_file("closed/file"),
    "read below closed": lambda: host.read_text("closed/file"),
    "write below closed": lambda: host.write_text("closed/file", "new"),
    "list closed": lambda: host.list_dir("closed"),
    "delete below closed": lambda: host.delete("closed/file"),
    "read unreadable": lambda: host.read_text("unreadable"),
    "write in readonly": lambda: host.write_text("readonly/file", "new"),
    "make in readonly": lambda: host.write_text("readonly/d/file", "new"),
    "delete in readonly": lambda: host.delete("readonly/file"),
    "root below closed": lambda: HostFilesystem(here / "closed" / "below"),
}
for name, attempt in attempts.items():
    try:
        print(name, "->", attempt())
    except FilesystemError as error:
        print(name, "->", "refused")
    except Exception as error:
        print(name, "->", type(error).__name__)
print("is_file unreadable", "->", host.is_file("unreadable"))
print("read in readonly", "->", host.read_text("readonly/file"))
for name in ("closed", "readonly"):
    (here / name).chmod(0o755)
    print("left in", name, "->", os.listdir(here / name), (here / name / "file").read_text())
"""


def test_without_the_rights_nothing_is_done_and_a_sentence_says_so() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)  # noqa: S103 - for the user that the test becomes
        ran = subprocess.run(
            [sys.executable, "-c", AS_A_NORMAL_USER],
            cwd=name,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert dict(line.split(" -> ") for line in ran.stdout.splitlines()) == {
        "exists below closed": "refused",
        "is_file below closed": "refused",
        "read below closed": "refused",
        "write below closed": "refused",
        "list closed": "refused",
        "delete below closed": "refused",
        "read unreadable": "refused",
        "write in readonly": "refused",
        "make in readonly": "refused",
        "delete in readonly": "refused",
        "root below closed": "refused",
        "is_file unreadable": "True",
        "read in readonly": "kept",
        "left in closed": "['file'] kept",
        "left in readonly": "['file'] kept",
    }, ran.stderr
