"""The store of evidence: contents under their own hash, and the key by which evidence is found again."""

from __future__ import annotations

import hashlib
import multiprocessing
import subprocess
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from donewhen.jobs.evidence.store import EvidenceKey, EvidenceStore

LIMIT = 256 * 1024


def name_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def store(tmp_path: Path) -> EvidenceStore:
    return EvidenceStore(tmp_path / "evidence")


def place(tmp_path: Path, content: bytes) -> Path:
    hexadecimal = hashlib.sha256(content).hexdigest()
    return tmp_path / "evidence" / ("large" if len(content) > LIMIT else hexadecimal[:2]) / hexadecimal


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\xff\x00\n", b"x" * LIMIT], ids=["empty", "text", "bytes", "most"]
)
def test_a_content_comes_back_by_its_hash(store: EvidenceStore, tmp_path: Path, content: bytes) -> None:
    name = store.put(content)
    assert name == name_of(content)
    assert store.get(name) == content
    assert store.get_unverified(name) == content
    assert place(tmp_path, content).read_bytes() == content
    assert not (tmp_path / "evidence" / "large").exists()


def test_the_same_content_is_kept_once_and_not_written_again(store: EvidenceStore, tmp_path: Path) -> None:
    store.put(b"hello")
    before = place(tmp_path, b"hello").stat()
    store.put(b"hello")
    after = place(tmp_path, b"hello").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert len(files(tmp_path / "evidence")) == 1


def test_a_value_is_kept_in_one_form_however_it_was_written(store: EvidenceStore) -> None:
    one = store.put_json({"b": [1, None], "a": "ü"})
    assert one == store.put_json({"a": "ü", "b": [1, None]})
    assert store.get(one) == '{"a":"ü","b":[1,null]}'.encode()
    assert store.get_json(one) == {"a": "ü", "b": [1, None]}


def test_what_was_never_kept_is_not_there(store: EvidenceStore) -> None:
    name = name_of(b"hello")
    assert store.get_unverified(name) is None
    assert store.get(name) is None
    assert store.get_json(name) is None


@pytest.mark.parametrize("size", [pytest.param(5, id="small"), pytest.param(LIMIT + 1, id="large")])
def test_a_content_that_was_changed_is_told_from_one_that_is_missing(
    store: EvidenceStore, tmp_path: Path, size: int
) -> None:
    content = b"1" * size
    name = store.put(content)
    place(tmp_path, content).write_bytes(b"2" * size)
    assert store.get(name) is None
    assert store.get_json(name) is None
    assert store.get_unverified(name) == b"2" * size
    place(tmp_path, content).unlink()
    assert store.get_unverified(name) is None


def test_a_content_that_was_changed_is_put_right_by_keeping_it_again(store: EvidenceStore, tmp_path: Path) -> None:
    name = store.put(b"hello")
    place(tmp_path, b"hello").write_bytes(b"HELLO")
    assert store.put(b"hello") == name
    assert store.get(name) == b"hello"


def test_a_content_that_is_no_json_has_no_value(store: EvidenceStore) -> None:
    assert store.get_json(store.put(b"{not json")) is None
    assert store.get_json(store.put(b"\xff\xfe\xfa")) is None
    assert store.get_json(store.put(b"5")) == 5


@pytest.mark.parametrize(
    "name",
    [
        "",
        "None",
        "sha256:",
        "sha256:../../etc/passwd",
        "sha256:" + "a" * 63,
        "sha256:" + "a" * 65,
        "sha256:" + "A" * 64,
        "sha256:" + "g" * 64,
        "md5:" + "a" * 64,
        "a" * 64,
        "sha256:" + "/" * 64,
    ],
)
def test_what_is_no_name_is_not_looked_for(store: EvidenceStore, tmp_path: Path, name: str) -> None:
    for folder in ("aa", "AA", "gg", "large"):
        (tmp_path / "evidence" / folder).mkdir(parents=True, exist_ok=True)
        stem = name.rpartition(":")[2]
        if stem and "/" not in stem:
            (tmp_path / "evidence" / folder / stem).write_bytes(b"planted")
    assert store.get_unverified(name) is None
    assert store.get(name) is None


def test_a_folder_where_a_content_belongs_counts_as_nothing(store: EvidenceStore, tmp_path: Path) -> None:
    place(tmp_path, b"hello").mkdir(parents=True)
    assert store.get(name_of(b"hello")) is None


def test_a_large_content_stays_on_this_machine(store: EvidenceStore, repository: Path, git: Callable[..., str]) -> None:
    here = EvidenceStore(repository / ".donewhen" / "evidence")
    small, large = here.put(b"small"), here.put(b"x" * (LIMIT + 1))
    assert here.get(large) == b"x" * (LIMIT + 1)
    assert (repository / ".donewhen/evidence/large/.gitignore").read_text() == "*\n"
    git(repository, "add", "--all")
    listed = git(repository, "ls-files").split()
    assert listed == [f".donewhen/evidence/{small[7:9]}/{small[7:]}"]
    assert large[7:] in {path.name for path in (repository / ".donewhen/evidence/large").iterdir()}


def test_a_gitignore_that_somebody_wrote_stays(store: EvidenceStore, tmp_path: Path) -> None:
    own = tmp_path / "evidence" / "large" / ".gitignore"
    own.parent.mkdir(parents=True)
    own.write_text("# mine\n*\n")
    store.put(b"x" * (LIMIT + 1))
    assert own.read_text() == "# mine\n*\n"


def _put_often(folder: Path, start: Barrier, contents: list[bytes]) -> None:
    start.wait()
    for content in contents:
        if EvidenceStore(folder).put(content) != name_of(content):
            raise AssertionError("another name")


def test_processes_that_keep_the_same_contents_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    contents = [f"content {number}".encode() for number in range(25)] + [b"y" * (LIMIT + 1)]
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    folder = tmp_path / "evidence"
    workers = [context.Process(target=_put_often, args=(folder, start, contents)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert all(EvidenceStore(folder).get(name_of(content)) == content for content in contents)
    assert len(files(folder)) == len(contents) + 1
    assert not [path for path in folder.rglob("*") if path.name.endswith(".tmp")]


def test_a_key_depends_on_each_of_its_parts() -> None:
    parts = EvidenceKey("c", "x", "e", "i")
    keys = {parts.key, *(parts._replace(**{name: "other"}).key for name in EvidenceKey._fields)}
    assert len(keys) == 6
    assert parts.key == EvidenceKey("c", "x", "e", "i").key
    assert EvidenceKey("a", "b", "c", "d").key != EvidenceKey("b", "a", "c", "d").key


def test_parts_tell_in_what_they_differ() -> None:
    parts = EvidenceKey("c", "x", "e", "i")
    assert parts.differing(parts._asdict()) == ()
    assert parts.differing({**parts._asdict(), "inputs": "other", "command": "other"}) == ("command", "inputs")
    assert parts.differing({}) == ("command", "executable", "environment", "inputs")


def test_the_names_are_those_that_other_tools_compute(store: EvidenceStore, tmp_path: Path) -> None:
    path = tmp_path / "content"
    path.write_bytes(b"hello")
    message = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
    assert store.put(b"hello") == f"sha256:{message}"
