"""The memory of files that were read before: it saves reading, and nobody who decides believes it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import donewhen.jobs.board.file_index as index_module
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board import survey as survey_module
from donewhen.jobs.board.file_index import FileIndex
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace

ME = Approval(Actor("me", "person"))


class Reader:
    """Reads a file as text, and remembers what it was asked to read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, content: bytes) -> Any:
        self.read.append(content.decode())
        return {"said": content.decode()}


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "index.sqlite"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("hello")
    return path


def look(database: Path | None, path: Path, reader: Reader, kind: str = "kind", wait: float = 0.0) -> Any:
    with FileIndex(database, wait=wait) as index:
        return index.get_or_read(kind, path, reader)["said"]


def rows(database: Path, table: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(f"select * from {table}").fetchall()  # noqa: S608
    finally:
        connection.close()


def test_a_file_that_did_not_change_is_read_once(database: Path, file: Path, reader: Reader) -> None:
    assert [look(database, file, reader) for _ in range(3)] == ["hello"] * 3
    assert reader.read == ["hello"]


def test_an_unchanged_file_is_not_even_opened(
    database: Path, file: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    look(database, file, reader)
    opened: list[object] = []
    original = os.open

    def counted(path: Any, *rest: Any, **more: Any) -> int:
        opened.append(path)
        return original(path, *rest, **more)

    monkeypatch.setattr(os, "open", counted)
    assert look(database, file, reader) == "hello"
    assert opened == []
    os.utime(file, (1, 1))
    look(database, file, reader)
    assert opened == [file]


def test_a_changed_file_is_read_again(database: Path, file: Path, reader: Reader) -> None:
    look(database, file, reader)
    file.write_text("world")
    assert look(database, file, reader) == "world"
    file.unlink()
    file.write_text("third")
    assert look(database, file, reader) == "third"
    assert reader.read == ["hello", "world", "third"]


def test_a_change_that_keeps_size_and_time_of_change_is_seen(database: Path, file: Path, reader: Reader) -> None:
    look(database, file, reader)
    before = file.stat()
    other = file.with_name("other")
    other.write_text("world")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert look(database, file, reader) == "world"


def test_a_touched_file_is_opened_and_what_it_says_is_known_by_its_content(
    database: Path, file: Path, reader: Reader
) -> None:
    look(database, file, reader)
    os.utime(file, (1, 1))
    assert look(database, file, reader) == "hello"
    file.write_text("world")
    look(database, file, reader)
    file.write_text("hello")
    assert look(database, file, reader) == "hello"
    assert reader.read == ["hello", "world"]


def test_what_is_made_of_a_file_is_remembered_for_each_kind(database: Path, file: Path, reader: Reader) -> None:
    look(database, file, reader, "one")
    look(database, file, reader, "two")
    look(database, file, reader, "two")
    assert reader.read == ["hello", "hello"]


def test_two_files_with_one_content_are_read_once(database: Path, file: Path, reader: Reader) -> None:
    other = shutil.copy(file, file.with_name("other"))
    with FileIndex(database) as index:
        both = [index.get_or_read("kind", path, reader) for path in (file, other)]
    assert (both[0] == both[1], reader.read) == (True, ["hello"])


def test_a_look_that_finds_nothing_new_writes_nothing(database: Path, file: Path, reader: Reader) -> None:
    look(database, file, reader)
    before = database.read_bytes()
    look(database, file, reader)
    assert database.read_bytes() == before


def test_without_a_place_nothing_is_remembered_and_nothing_is_made(tmp_path: Path, file: Path, reader: Reader) -> None:
    assert [look(None, file, reader) for _ in range(2)] == ["hello"] * 2
    assert reader.read == ["hello", "hello"]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_gone_or_a_link_is_the_callers_to_tell(database: Path, file: Path, reader: Reader) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    for path in (link, file.with_name("nothing"), file.parent):
        with pytest.raises(OSError):
            look(database, path, reader)
    assert reader.read == []


def test_deleting_it_loses_nothing(database: Path, file: Path, reader: Reader) -> None:
    look(database, file, reader)
    for left in database.parent.iterdir():
        left.unlink()
    assert look(database, file, reader) == "hello"
    assert look(database, file, reader) == "hello"
    assert reader.read == ["hello", "hello"]


def no_database(path: Path) -> None:
    path.write_bytes(b"this is not a database" * 100)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_cut_off_file(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def a_garbled_file(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def an_older_layout(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.executescript("create table seen (a); insert into seen values (1); pragma user_version = 77;")
    connection.close()


def other_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript("drop table seen; drop table said;")
    connection.close()


def rubbish_rows(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("update said set data = '{broken'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "broken",
    [no_database, a_folder, a_cut_off_file, a_garbled_file, an_older_layout, other_tables, rubbish_rows],
)
def test_a_broken_database_changes_nothing_of_what_is_said(
    database: Path, file: Path, reader: Reader, broken: Any
) -> None:
    look(database, file, reader)
    broken(database)
    file.write_text("world")
    assert [look(database, file, reader) for _ in range(3)] == ["world"] * 3


@pytest.mark.parametrize(
    "broken", [no_database, a_cut_off_file, a_garbled_file, an_older_layout, other_tables, rubbish_rows]
)
def test_a_broken_database_is_begun_anew(database: Path, file: Path, reader: Reader, broken: Any) -> None:
    look(database, file, reader)
    broken(database)
    look(database, file, reader)
    reader.read.clear()
    assert (look(database, file, reader), reader.read) == ("hello", [])


def test_an_empty_file_is_a_database_yet_to_be(database: Path, file: Path, reader: Reader) -> None:
    database.parent.mkdir()
    database.touch()
    assert [look(database, file, reader) for _ in range(2)] == ["hello"] * 2
    assert reader.read == ["hello"]


def test_a_place_that_can_not_be_made_is_done_without(file: Path, reader: Reader) -> None:
    assert look(file / "below" / "index.sqlite", file, reader) == "hello"
    assert file.read_text() == "hello"


def test_a_database_that_somebody_else_holds_is_done_without_and_left_whole(
    database: Path, file: Path, reader: Reader
) -> None:
    look(database, file, reader)
    holder = sqlite3.connect(database)
    try:
        holder.execute("pragma locking_mode = exclusive")
        holder.execute("begin exclusive")
        file.write_text("world")
        assert look(database, file, reader) == "world"
    finally:
        holder.close()
    assert len(rows(database, "said")) == 1
    assert look(database, file, reader) == "world"


def test_a_database_that_is_being_written_is_read_meanwhile(database: Path, file: Path, reader: Reader) -> None:
    look(database, file, reader)
    holder = sqlite3.connect(database)
    try:
        holder.execute("begin immediate")
        assert look(database, file, reader) == "hello"
        assert reader.read == ["hello"]
        file.write_text("world")
        assert look(database, file, reader) == "world"
    finally:
        holder.close()


AS_NOBODY = """
import os, sys
from pathlib import Path
from donewhen.jobs.board.file_index import FileIndex
if os.getuid() == 0:
    os.setuid(65534)
with FileIndex(Path(sys.argv[1]), wait=0.0) as index:
    for path in sys.argv[2:]:
        print(index.get_or_read("kind", Path(path), lambda content: {"said": "read " + content.decode()})["said"])
"""


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that other users may enter, too."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        for path in Path(folder).rglob("*"):
            path.chmod(0o755)


def test_a_database_that_may_not_be_written_is_left_as_it_is(open_place: Path, reader: Reader) -> None:
    database, file = open_place / "state" / "index.sqlite", open_place / "file"
    file.write_text("hello")
    look(database, file, reader)
    before = database.read_bytes()
    database.chmod(0o444)
    database.parent.chmod(0o555)
    file.write_text("world")
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(database), str(file)], capture_output=True, text=True, cwd="/"
    )
    assert (done.stdout, done.stderr) == ("read world\n", "")
    assert database.read_bytes() == before


FULL_DISK = """
import resource, sys
from pathlib import Path
from donewhen.jobs.board.file_index import FileIndex
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
with FileIndex(Path(sys.argv[2]), wait=0.0) as index:
    print(index.get_or_read("kind", Path(sys.argv[3]), lambda content: {"said": content.decode()})["said"])
"""


@pytest.mark.parametrize("room", [0, 1000, 9000])
def test_a_full_disk_costs_the_memory_and_nothing_else(database: Path, file: Path, reader: Reader, room: int) -> None:
    look(database, file, reader)
    file.write_text("world" * 20_000)
    argv = [sys.executable, "-c", FULL_DISK, str(room), str(database), str(file)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("world" * 20_000, "")
    assert look(database, file, reader) == "world" * 20_000


LOOK_AT_MANY = """
import sys
from pathlib import Path
from donewhen.jobs.board.file_index import FileIndex
for _ in range(int(sys.argv[3])):
    with FileIndex(Path(sys.argv[1])) as index:
        for path in sorted(Path(sys.argv[2]).iterdir()):
            assert index.get_or_read("kind", path, lambda content: {"said": content.decode()}) == {"said": path.name}
"""


def test_two_processes_look_at_once_and_each_is_told_what_is_there(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number}").write_text(f"{number}")
    argv = [sys.executable, "-c", LOOK_AT_MANY, str(database), str(folder), "10"]
    both = [subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in both] == [("", 0)] * 2
    subprocess.run(argv, check=True)
    assert len(rows(database, "seen")) == 60


def test_what_no_file_says_any_more_is_forgotten_in_time(
    database: Path, file: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_MIN_KEPT", 20)
    for number in range(100):
        file.write_text(f"{number}")
        look(database, file, reader)
    kept = rows(database, "said")
    assert len(kept) <= 2 * 1 + 20 + 1
    reader.read.clear()
    assert (look(database, file, reader), reader.read) == ("99", [])


def test_files_that_are_gone_are_forgotten_in_time(
    database: Path, tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_MIN_KEPT", 20)
    for number in range(100):
        path = tmp_path / f"file-{number}"
        path.write_text(f"{number}")
        look(database, path, reader)
        path.unlink()
    assert len(rows(database, "seen")) <= 50


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    made = create_project(tmp_path / "shop", "Shop")
    jobs = [add_job(made, title, criteria=["It works"], commands=["true"]) for title in ("One", "Two", "Three")]
    for proposal in agreement_proposals(made, jobs):
        agree(made, proposal, ME)
    return made


def test_a_second_look_at_all_jobs_reads_what_changed_and_nothing_else(
    shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    for name in ("_indexed_plan", "_indexed_chain"):
        original = getattr(survey_module, name)

        def counted(raw: bytes, *rest: Any, original: Any = original, name: str = name) -> Any:
            read.append(name)
            return original(raw, *rest)

        monkeypatch.setattr(survey_module, name, counted)
    first = survey_jobs(shop)
    assert sorted(read) == ["_indexed_chain"] * 3 + ["_indexed_plan"] * 3
    read.clear()
    assert (survey_jobs(shop), read) == (first, [])
    two = shop.place("two").path
    two.write_text(two.read_text().replace("title: Two", "title: Second"))
    assert [job.title for job in survey_jobs(shop).jobs] == ["One", "Second", "Three"]
    assert read == ["_indexed_plan"]
    read.clear()
    run_as_evidence(shop, shop.job("three"), ["true"], ME.by)
    assert [job.events for job in survey_jobs(shop).jobs] == [1, 1, 2]
    assert read == ["_indexed_chain"]
    (shop.folder / "index.sqlite").unlink()
    assert [job.title for job in survey_jobs(shop).jobs] == ["One", "Second", "Three"]


def poison(shop: Workspace) -> None:
    """Let the memory say that every job is agreed, untouched and done."""
    survey_jobs(shop)
    connection = sqlite3.connect(shop.folder / "index.sqlite")
    for kind, sha, data in connection.execute("select kind, sha, data from said").fetchall():
        said = json.loads(data) | ({"status": "done", "title": "POISON"} if "title" in json.loads(data) else {})
        connection.execute("update said set data = ? where kind = ? and sha = ?", (json.dumps(said), kind, sha))
    connection.commit()
    connection.close()


def test_a_poisoned_memory_deceives_the_overview_and_nobody_who_decides(shop: Workspace) -> None:
    one = shop.place("one").path
    one.write_text(one.read_text().replace("iteration: 0", "iteration: 2").replace("- AC-1: It works", "- AC-1: It is"))
    poison(shop)
    assert {job.title for job in survey_jobs(shop).jobs} == {"POISON"}
    found = audit_workspace(shop)
    assert {(finding.code, finding.where.rpartition(":")[0]) for finding in found.findings} >= {
        ("tampered", shop.where(one)),
        ("voided", shop.where(one)),
    }
    assert shop.job("one").title == "One"
    proposed = agreement_proposals(shop, [shop.job("one")])[1]
    assert (proposed.agreement.state, proposed.plan.status) == ("voided", "planned")
    agree(shop, proposed, ME)
    assert run_as_evidence(shop, shop.job("one"), ["true"], ME.by).passed
    ledger = [path.read_text() for path in (shop.folder / "ledger").rglob("*.json*")]
    assert ledger
    assert "POISON" not in "".join(ledger)
    assert shop.ledger.read(shop.job("one").id).entries[-2].data["terms"]["criteria"] == ["It is"]


@pytest.mark.parametrize("data", ["[]", "null", "7", "{}"])
def test_a_memory_that_says_what_can_not_be_said_does_not_stop_the_overview(shop: Workspace, data: str) -> None:
    survey_jobs(shop)
    connection = sqlite3.connect(shop.folder / "index.sqlite")
    connection.execute("update said set data = ?", (data,))
    connection.commit()
    connection.close()
    assert [job.title for job in survey_jobs(shop).jobs] == ["One", "Two", "Three"]
