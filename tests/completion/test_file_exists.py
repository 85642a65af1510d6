"""FileExistsChecker, on files in memory and on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from donewhen.completion import FileExistsChecker, ReasonCode, TaskCompletionContext, TaskCompletionResult, run_check
from donewhen.filesystem import HostFilesystem
from donewhen.runtime import Session
from donewhen.testing import make_context
from sentences import assert_sentences


def on_disk(root: Path) -> TaskCompletionContext:
    return TaskCompletionContext(session=Session(), filesystem=HostFilesystem(root))


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
class TestBoth:
    def test_all_files_there_is_complete(self, strict: bool) -> None:
        context = make_context(files={"output.txt": "x", "src/app.py": "y"})
        result = FileExistsChecker(("output.txt", "src/app.py"), strict=strict).check(context)
        assert result == TaskCompletionResult.ok("All required files exist.")

    def test_missing_files_are_named_and_only_they(self, strict: bool) -> None:
        context = make_context(files={"a.txt": "x"})
        result = FileExistsChecker(("a.txt", "b.txt", "c/d.txt"), strict=strict).check(context)
        assert result == TaskCompletionResult.incomplete(
            "Missing required files: b.txt, c/d.txt", code=ReasonCode.FILES_MISSING
        )

    def test_a_directory_is_not_a_file(self, strict: bool, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        for context in (make_context(files={"out/x.txt": "x"}), on_disk(tmp_path)):
            result = FileExistsChecker(("out",), strict=strict).check(context)
            assert result == TaskCompletionResult.incomplete(
                "Missing required files: out (is a directory)", code=ReasonCode.FILES_MISSING
            )

    def test_a_named_pipe_is_not_a_file_and_does_not_hang_the_check(self, strict: bool, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        result = FileExistsChecker(("pipe",), strict=strict).check(on_disk(tmp_path))
        assert result == TaskCompletionResult.incomplete(
            "Missing required files: pipe (is not a regular file)", code=ReasonCode.FILES_MISSING
        )

    def test_a_dangling_symlink_is_not_a_file(self, strict: bool, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("nowhere")
        result = FileExistsChecker(("link",), strict=strict).check(on_disk(tmp_path))
        assert result.feedback == "Missing required files: link"

    @pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "link"])
    def test_a_file_outside_of_the_root_is_never_a_pass(self, strict: bool, tmp_path: Path, path: str) -> None:
        (tmp_path / "secret").write_text("x")
        root = tmp_path / "root"
        root.mkdir()
        (root / "link").symlink_to(tmp_path / "secret")
        result = run_check(FileExistsChecker((path,), strict=strict), on_disk(root))
        assert result.complete is False
        assert result.code is ReasonCode.GATE_ERROR

    def test_one_path_instead_of_a_tuple_is_refused(self, strict: bool) -> None:
        with pytest.raises(TypeError) as caught:
            FileExistsChecker("output.txt", strict=strict)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("nothing", [(), []], ids=repr)
    def test_a_check_of_nothing_is_refused(self, strict: bool, nothing: Any) -> None:
        with pytest.raises(ValueError) as caught:
            FileExistsChecker(nothing, strict=strict)
        assert_sentences(caught.value)


class TestLenient:
    def test_lenient_is_the_default(self) -> None:
        assert FileExistsChecker(("a",)).strict is False

    def test_without_a_filesystem_there_is_nothing_to_check(self) -> None:
        assert FileExistsChecker(("a",)).check(make_context()) == TaskCompletionResult.ok("No filesystem to check.")

    @pytest.mark.parametrize("content", [b"", b" \n\t\r\n"])
    def test_an_empty_file_is_there(self, content: bytes) -> None:
        assert FileExistsChecker(("a",)).check(make_context(files={"a": content})).complete is True


class TestStrict:
    def test_without_a_filesystem_the_check_is_incomplete(self) -> None:
        result = FileExistsChecker(("a", "b"), strict=True).check(make_context())
        assert (result.complete, result.code) == (False, ReasonCode.NO_FILESYSTEM)
        assert_sentences(result.feedback)

    @pytest.mark.parametrize("content", [b"", b"\n", b" \n\t\r\n\x0b\x0c"], ids=repr)
    def test_a_file_of_white_space_is_empty(self, content: bytes) -> None:
        context = make_context(files={"a": content, "b": "x", "c": b""})
        result = FileExistsChecker(("a", "b", "c"), strict=True).check(context)
        assert (result.complete, result.code) == (False, ReasonCode.FILES_EMPTY)
        assert_sentences(result.feedback)

    def test_a_missing_file_is_told_before_an_empty_one(self) -> None:
        result = FileExistsChecker(("a", "b"), strict=True).check(make_context(files={"a": ""}))
        assert result.code is ReasonCode.FILES_MISSING

    @pytest.mark.parametrize("content", [b"x", b"\x00", b"\xff\xfe", "é".encode("latin-1")], ids=repr)
    def test_any_other_content_will_do(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a").write_bytes(content)
        assert FileExistsChecker(("a",), strict=True).check(on_disk(tmp_path)).complete is True


def test_the_paths_may_come_in_any_sequence() -> None:
    assert FileExistsChecker(["a", "b"]).required_files == ("a", "b")
    assert FileExistsChecker(required_files=("a",)).required_files == ("a",)
