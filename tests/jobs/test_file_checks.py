"""Looking at a file: there, saying what it should, of the right shape, with enough rows."""

from __future__ import annotations

import builtins
import json
import os
import socket
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError, MissingExtraError
from donewhen.jobs.contract.inputs import hash_file
from donewhen.jobs.evidence.file_checks import FileCheckResult, checked_files, count_rows, file_state, run_file_check
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

LIMIT = 64 * 1024 * 1024


class Place:
    def __init__(self, root: Path) -> None:
        self.workspace: Workspace = create_project(root, "Demo")
        self.job: Job = add_job(self.workspace, "First")

    def look(self, check: str) -> FileCheckResult:
        return run_file_check(self.workspace, self.job, parse_check(f"file {check}", "here"))

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.job.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def against(self, data: str, schema: Any) -> FileCheckResult:
        self.write("data.json", data)
        self.write("schema.json", schema if isinstance(schema, str) else json.dumps(schema))
        return self.look("data.json schema schema.json")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_file_with_something_in_it_is_there(place: Place) -> None:
    place.write("outputs/report.md", "done\n")
    assert place.look("outputs/report.md") == FileCheckResult(True, "5 bytes")


def test_a_path_with_a_slash_in_front_stands_in_the_project(place: Place) -> None:
    (place.workspace.root / "README.md").write_text("x")
    assert place.look("/README.md").passed
    assert not place.look("README.md").passed


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n\x0b\x0c"], ids=["empty", "a newline", "white space"])
def test_a_file_with_nothing_in_it_does_not_pass(place: Place, content: bytes) -> None:
    place.write("x", content)
    assert place.look("x") == FileCheckResult(False, "the file is empty", "empty")
    assert place.look("x matches /^/") == FileCheckResult(False, "the file is empty", "empty")


def test_a_file_that_is_not_there_does_not_pass(place: Place) -> None:
    assert place.look("x") == FileCheckResult(False, "file not found", "missing")
    place.write("file", "text")
    found = place.look("file/below")
    assert not found.passed
    assert found.detail == os.strerror(20)


def test_a_folder_is_no_file(place: Place) -> None:
    before = set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()
    assert place.look("outputs") == FileCheckResult(False, "not a regular file", "not_a_file")
    assert not before or set(os.listdir("/proc/self/fd")) <= before


def test_a_pipe_is_no_file_and_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.job.folder / "pipe")
    assert place.look("pipe") == FileCheckResult(False, "not a regular file", "not_a_file")


def test_a_link_is_not_followed(place: Place) -> None:
    place.write("real", "text")
    (place.job.folder / "link").symlink_to("real")
    assert not place.look("link").passed
    (place.job.folder / "dangling").symlink_to("nowhere")
    assert not place.look("dangling").passed


@pytest.mark.parametrize("path", ["../../../etc/hostname", "..", "/..", "/"])
def test_a_path_that_leads_out_is_a_mistake_in_the_plan(place: Place, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        place.look(path)
    assert_sentences(caught.value)


def test_a_link_out_of_the_project_is_a_mistake_in_the_plan(place: Place) -> None:
    (place.job.folder / "link").symlink_to("/etc")
    with pytest.raises(ConfigError) as caught:
        place.look("link/hostname")
    assert_sentences(caught.value)


def test_the_state_of_a_file_is_told_in_one_word(place: Place) -> None:
    os.mkfifo(place.job.folder / "pipe")
    (place.job.folder / "link").symlink_to("plan.md")
    os.truncate(place.write("huge", "x"), LIMIT + 1)
    place.write("nothing", "")
    found = {
        name: file_state(place.job.folder / name)
        for name in ("plan.md", "missing", "nothing", "outputs", "pipe", "link", "huge")
    }
    assert found == {
        "plan.md": "good",
        "missing": "missing",
        "nothing": "empty",
        "outputs": "not_a_file",
        "pipe": "not_a_file",
        "link": "not_a_file",
        "huge": "good",
    }


@pytest.mark.parametrize("rule", ["matches /x/", "rows >= 1"])
def test_a_file_that_is_too_large_to_be_searched_is_not_read_and_the_reason_is_its_size(
    place: Place, rule: str
) -> None:
    os.truncate(place.write("huge", "x"), LIMIT + (1 << 20))
    found = place.look(f"huge {rule}")
    assert (found.passed, found.state) == (False, "too_large")
    assert "65 MB" in found.detail
    assert "64 MB" in found.detail
    assert_sentences(found.detail)


def test_a_file_of_more_than_a_gigabyte_exists_and_is_not_loaded(place: Place) -> None:
    path = place.write("huge", "x")
    os.truncate(path, (1 << 30) + 1)
    tracemalloc.start()
    try:
        assert place.look("huge") == FileCheckResult(True, f"{(1 << 30) + 1} bytes")
        assert file_state(path) == "good"
        os.truncate(path, LIMIT + 1)
        assert hash_file(path).startswith("sha256:")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_large_file_of_white_space_is_empty(place: Place) -> None:
    assert file_state(place.write("blank", b"\xef\xbb\xbf" + b" " * 1_000_000)) == "empty"
    assert file_state(place.write("late", b" " * 1_000_000 + b"x")) == "good"


@pytest.mark.parametrize(
    ("pattern", "passed"),
    [
        ("PASS", True),
        ("^second", True),
        ("first$", True),
        (r"\Asecond", False),
        ("FAIL", False),
        ("first.second", False),
        ("(?s)first.*PASS", True),
        ("/slashes/", True),
        ("ü", True),
    ],
)
def test_a_pattern_is_searched_line_by_line(place: Place, pattern: str, passed: bool) -> None:
    place.write("x", "first\nsecond /slashes/ ü\nPASS\n")
    found = place.look(f"x matches /{pattern}/")
    assert found == FileCheckResult(passed, f"/{pattern}/ {'matches' if passed else 'does not match'}")


def test_a_file_that_is_not_utf_8_can_still_be_searched(place: Place) -> None:
    place.write("x", b"\xff\xfe PASS")
    assert place.look("x matches /PASS/").passed


@pytest.mark.parametrize(
    ("suffix", "content", "rows"),
    [
        pytest.param(".csv", "a,b\n1,2\n3,4\n", 2, id="csv"),
        pytest.param(".csv", "a,b\n1,2", 1, id="csv without a last newline"),
        pytest.param(".csv", "a,b\r\n1,2\r\n", 1, id="csv with CRLF"),
        pytest.param(".csv", "a,b\n", 0, id="csv with a header only"),
        pytest.param(".csv", "\n\n", 0, id="csv of empty lines"),
        pytest.param(".csv", "a,b\n\n , \n,\n1,2\n", 1, id="csv with rows of nothing"),
        pytest.param(".csv", 'a,b\n"1\n2\n3",x\n', 1, id="csv with a newline in a field"),
        pytest.param(".csv", '\ufeff"a",b\n1,2\n', 1, id="csv with a byte order mark"),
        pytest.param(".csv", "a\n" + "x" * 200_000 + "\n", 1, id="csv with a long field"),
        pytest.param(".csv", "a\x85b\u2028c\n1\n", 1, id="csv with other separators"),
        pytest.param(".CSV", "a,b\n1,2\n", 1, id="CSV in capitals"),
        pytest.param(".tsv", 'a\tb\n"1\n"\t2\n3\t4\n', 2, id="tsv"),
        pytest.param(".tsv", "a\tb\n,\t,\n", 1, id="tsv with commas"),
        pytest.param(".json", "[1, null, {}]", 3, id="json list"),
        pytest.param(".json", "[]", 0, id="json without items"),
        pytest.param(".json", '{"a": 1, "b": 2}', 0, id="json object"),
        pytest.param(".json", "[1,\n2,", 0, id="broken json"),
        pytest.param(".json", "[" * 100_000, 0, id="deep json"),
        pytest.param(".json", "\ufeff[1]", 1, id="json with a byte order mark"),
        pytest.param(".JSON", "[1,\n2,\n3,\n4]", 4, id="JSON in capitals"),
        pytest.param(".jsonl", '{"a": 1}\n\n{"a": 2}\n', 2, id="jsonl"),
        pytest.param(".jsonl", '{"a": "\u2028\x0b\x0c\x1c\x85"}\n', 1, id="jsonl with other separators"),
        pytest.param(".txt", "one\n  \ntwo\r\nthree", 3, id="text"),
        pytest.param("", "one", 1, id="no suffix"),
    ],
)
def test_rows_are_rows_of_data(place: Place, suffix: str, content: str, rows: int) -> None:
    assert count_rows(content.encode(), suffix) == rows
    if rows:
        place.write(f"data{suffix}", content)
        assert place.look(f"data{suffix} rows >= {rows}") == FileCheckResult(True, f"rows: {rows}, required: {rows}")
        assert place.look(f"data{suffix} rows >= {rows + 1}") == FileCheckResult(
            False, f"rows: {rows}, required: {rows + 1}"
        )


def test_zero_rows_may_be_asked_for_but_an_empty_file_is_still_none(place: Place) -> None:
    place.write("data.csv", "a,b\n")
    assert place.look("data.csv rows >= 0").passed
    place.write("data.csv", "")
    assert not place.look("data.csv rows >= 0").passed


PERSON = {"type": "object", "required": ["name"], "properties": {"age": {"type": "integer"}}}


def test_data_that_fits_its_schema_passes(place: Place) -> None:
    assert place.against('{"name": "x", "age": 3}', PERSON) == FileCheckResult(True, "fits the schema")
    assert place.against('{"name": "x"}', {**PERSON, "$schema": "http://json-schema.org/draft-07/schema#"}).passed
    assert place.against("5", True).passed


def test_data_that_does_not_fit_is_told_where_and_why(place: Place) -> None:
    found = place.against('{"name": "x", "age": "three"}', PERSON)
    assert not found.passed
    assert found.detail.startswith("age: ")
    assert_sentences(found.detail)
    missing = place.against("{}", PERSON)
    assert not missing.passed
    assert_sentences(missing.detail)
    deep = place.against('[{"a": [1, "x"]}]', {"items": {"properties": {"a": {"items": {"type": "integer"}}}}})
    assert deep.detail.startswith("0/a/1: ")


def test_what_is_told_about_data_is_one_line_that_drives_no_terminal(place: Place) -> None:
    found = place.against(json.dumps("\x1b[31m" + "long " * 200), {"type": "integer"})
    assert not found.passed
    assert "\x1b" not in found.detail
    assert len(found.detail) <= 200


@pytest.mark.parametrize(
    "data", ["{broken", "[" * 100_000, "1" * 5000], ids=["broken", "too deep", "too long a number"]
)
def test_data_that_is_not_json_does_not_pass(place: Place, data: str) -> None:
    found = place.against(data, {})
    assert not found.passed
    assert_sentences(found.detail)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param("{broken", id="not JSON"),
        pytest.param("", id="empty"),
        pytest.param("5", id="a number"),
        pytest.param("null", id="null"),
        pytest.param("[]", id="a list"),
        pytest.param('"text"', id="a text"),
        pytest.param('{"type": "nope"}', id="unknown type"),
        pytest.param('{"pattern": "("}', id="broken pattern"),
        pytest.param('{"$ref": "#"}', id="a circle"),
        pytest.param('{"$ref": "#/nowhere"}', id="points nowhere"),
        pytest.param('{"$ref": "other.json"}', id="points to a file"),
    ],
)
def test_a_broken_schema_is_a_mistake_in_the_schema_not_in_the_data(place: Place, schema: str) -> None:
    place.write("other.json", "true")
    with pytest.raises(ConfigError) as caught:
        place.against('{"name": "x"}', schema)
    assert str(caught.value.where).endswith("schema.json")


def test_a_schema_that_is_not_there_is_a_mistake_too(place: Place) -> None:
    place.write("data.json", "{}")
    with pytest.raises(ConfigError) as caught:
        place.look("data.json schema missing.json")
    assert_sentences(caught.value)
    assert str(caught.value.where).endswith("missing.json")
    with pytest.raises(ConfigError) as caught:
        place.look("data.json schema ../../../x")
    assert_sentences(caught.value)


def test_a_reference_to_another_machine_is_never_followed(place: Place) -> None:
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)

        def serve() -> None:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                return
            with connection:
                asked.append(connection.recv(100))
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\ntrue")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(ConfigError) as caught:
                place.against("{}", {"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"})
            assert_sentences(caught.value)
        finally:
            thread.join()
    assert asked == []


def test_without_the_extra_it_is_said_how_to_get_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "jsonschema":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError) as caught:
        place.against("{}", {})
    assert "donewhen[schema]" in str(caught.value)


def test_a_check_depends_on_its_file_and_its_schema(place: Place) -> None:
    def names(check: str) -> set[str]:
        return set(checked_files(place.workspace, place.job, parse_check(check, "here")))

    inside = f"jobs/{place.job.folder.name}"
    assert names("file x") == {f"{inside}/x"}
    assert names("file x rows >= 3") == {f"{inside}/x"}
    assert names("file x schema /schemas/s.json") == {f"{inside}/x", "schemas/s.json"}
