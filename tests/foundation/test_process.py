"""A command runs without a shell, in a small environment, and its output comes back bounded."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import donewhen
from donewhen.foundation import process as process_module
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.process import CommandNotRunnableError, CommandResult, run_command, small_environment
from sentences import assert_sentences

GUARD = 60.0
"""Seconds; far more than any of these commands takes. Only a hang reaches it."""

SOURCE = Path(donewhen.__file__).parents[1]
ENV = "/usr/bin/env"


def sh(script: str, cwd: Path, timeout: float = GUARD, **options: object) -> CommandResult:
    return run_command(["/bin/sh", "-c", script], cwd=cwd, timeout=timeout, **options)  # type: ignore[arg-type]


def python(script: str, cwd: Path, timeout: float = GUARD) -> CommandResult:
    return run_command([sys.executable, "-I", "-S", "-c", script], cwd=cwd, timeout=timeout)


def environment_of(result: CommandResult) -> dict[str, str]:
    return dict(line.split("=", 1) for line in result.output.splitlines())


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


# --- how it ended


@pytest.mark.parametrize("status", [0, 1, 2, 127, 255])
def test_the_exit_status_is_the_commands_own(tmp_path: Path, status: int) -> None:
    result = sh(f"exit {status}", tmp_path)
    assert (result.ending, result.exit_code, result.output) == ("exited", status, "")
    assert result.succeeded is (status == 0)


@pytest.mark.parametrize("number", [9, 11, 15])
def test_a_command_ended_by_a_signal_has_a_negative_exit_code_and_did_not_succeed(tmp_path: Path, number: int) -> None:
    result = sh(f"kill -{number} $$; sleep 30", tmp_path)
    assert (result.ending, result.exit_code, result.succeeded) == ("exited", -number, False)


@pytest.mark.parametrize("ending", ["timed_out", "cancelled"])
def test_only_a_command_that_ended_by_itself_can_have_succeeded(ending: str) -> None:
    assert CommandResult(("x",), ending, 0, "", 1.0).succeeded is False  # type: ignore[arg-type]


def test_the_result_says_what_was_run_and_how_long_it_took(tmp_path: Path) -> None:
    result = run_command(["/bin/sh", "-c", "exit 0"], cwd=tmp_path, timeout=GUARD)
    assert result.argv == ("/bin/sh", "-c", "exit 0")
    assert 0 < result.seconds < GUARD


def test_the_command_runs_in_the_folder_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    assert Path(sh("pwd -P", tmp_path / "here").output.strip()) == (tmp_path / "here").resolve()


def test_a_relative_command_is_looked_up_in_that_folder(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho found\n")
    script.chmod(0o755)
    assert run_command(["./script"], cwd=tmp_path, timeout=GUARD).output == "found\n"


def test_there_is_no_shell_between_the_words_and_the_command(tmp_path: Path) -> None:
    words = ["$HOME", "`id`", "a b", "*", ";", "", "'", "-n", "ü", "two\nlines"]
    script = "import sys; sys.stdout.buffer.write('|'.join(sys.argv[1:]).encode())"
    result = run_command([sys.executable, "-X", "utf8", "-c", script, *words], cwd=tmp_path, timeout=GUARD)
    assert result.output == "|".join(words)


def test_standard_input_is_empty_and_not_ours(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from donewhen.foundation.process import run_command;"
        "print(run_command(['/bin/sh', '-c', 'cat; echo end'], cwd=Path.cwd(), timeout=60).output, end='')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input="what was typed\n",
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=GUARD,
    )
    assert ran.stdout == "end\n", ran.stderr


def test_commands_in_several_threads_each_get_their_own_output(tmp_path: Path) -> None:
    outputs: dict[int, str] = {}

    def run(number: int) -> None:
        outputs[number] = sh(f"for i in 1 2 3 4 5; do echo {number}; done", tmp_path).output

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    assert outputs == {number: f"{number}\n" * 5 for number in range(6)}


def test_descriptors_are_closed_however_a_command_ends(tmp_path: Path) -> None:
    before = open_descriptors()
    sh("echo x", tmp_path)
    sh("exit 1", tmp_path)
    sh("exec >&- 2>&-; sleep 30", tmp_path, timeout=0.2)
    with pytest.raises(CommandNotRunnableError):
        run_command(["no-such-command-anywhere"], cwd=tmp_path, timeout=GUARD)
    assert open_descriptors() == before


def test_no_descriptor_of_ours_reaches_the_command(tmp_path: Path) -> None:
    ours = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        result = python(f"import os; os.fstat({ours})", tmp_path)
    finally:
        os.close(ours)
    assert "Bad file descriptor" in result.output


# --- what it printed


def test_output_and_errors_come_back_as_one_text_in_the_order_written(tmp_path: Path) -> None:
    assert sh("echo one; echo two >&2; echo three", tmp_path).output == "one\ntwo\nthree\n"


def test_output_written_just_before_the_end_is_not_lost(tmp_path: Path) -> None:
    # 60 000 bytes fit into the pipe, so that the command can be gone before the first byte is read.
    for _ in range(5):
        result = python("import os; os.write(1, b'x' * 60000); os._exit(0)", tmp_path)
        assert result.output == "x" * 60_000


def test_output_larger_than_the_pipe_does_not_block_the_command(tmp_path: Path) -> None:
    result = python("import sys; sys.stdout.write('x' * 100_000 + 'END')", tmp_path)
    assert result.succeeded
    assert result.output == "x" * 100_000 + "END"


def test_a_command_that_closes_its_output_is_still_waited_for(tmp_path: Path) -> None:
    result = sh("echo before; exec >&- 2>&-; sleep 0.3; exit 7", tmp_path)
    assert (result.ending, result.exit_code, result.output) == ("exited", 7, "before\n")


def test_bytes_that_are_not_utf_8_are_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    assert sh(r"printf 'a\377b\303'", tmp_path).output == "a\ufffdb\ufffd"


def test_a_character_is_read_whole_although_it_is_written_in_pieces(tmp_path: Path) -> None:
    assert sh(r"printf '\342'; sleep 0.2; printf '\202\254'", tmp_path).output == "€"


def test_of_a_huge_output_the_beginning_and_the_end_are_kept_in_little_memory(tmp_path: Path) -> None:
    size = 48 * 1024 * 1024
    script = (
        "import os\n"
        "def put(data):\n"
        "    while data: data = data[os.write(1, data):]\n"
        "put(b'BEGINNING\\n')\n"
        f"for _ in range({size // 65536}): put(b'x' * 65536)\n"
        "put(b'\\nEND')\n"
    )
    tracemalloc.start()
    try:
        result = python(script, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.succeeded
    assert result.output.startswith("BEGINNING\n")
    assert result.output.endswith("\nEND")
    gap = re.search(r"\n\[… (\d+) bytes left out …\]\n", result.output)
    assert gap is not None
    kept = len((result.output[: gap.start()] + result.output[gap.end() :]).encode())
    assert kept + int(gap[1]) == size + len("BEGINNING\n\nEND")
    assert kept >= 32 * 1024
    assert peak < size / 12


def test_a_writer_that_is_always_quicker_does_not_keep_the_reader_from_looking_at_the_clock() -> None:
    # /dev/zero has always more to read, as a pipe can when its writer has the better processor.
    endless = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert process_module._drain(endless, process_module._Output()) is True
    finally:
        os.close(endless)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=12))
def test_what_is_kept_of_a_stream_does_not_depend_on_how_it_was_cut_into_pieces(pieces: list[bytes]) -> None:
    head, tail = 8, 16
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process_module, "_HEAD", head)
        patch.setattr(process_module, "_TAIL", tail)
        output = process_module._Output()
        for piece in pieces:
            output.add(piece)
        text = output.text()
    whole = b"".join(pieces)
    if len(whole) > head + tail:
        left_out = len(whole) - head - tail
        whole = whole[:head] + f"\n[… {left_out} bytes left out …]\n".encode() + whole[-tail:]
    assert text == whole.decode(errors="replace")


# --- the environment


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME",
        "PYTHONWARNINGS", "PYTEST_ADDOPTS", "NODE_OPTIONS", "BASH_ENV", "ENV", "IFS", "GIT_DIR", "MAKEFLAGS",
        "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK",
        "SOME_PASSWORD", "PATHS", "MYPATH", "path", "XLC_ALL",
    ],
)  # fmt: skip
def test_what_changes_a_command_and_what_is_secret_stays_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/nowhere")
    assert name not in small_environment()


@pytest.mark.parametrize("name", ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV", "CI"])
def test_what_a_command_needs_to_find_its_tools_is_passed_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "a value")
    assert small_environment()[name] == "a value"


def test_a_variable_that_is_not_set_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.delenv("WANTED", raising=False)
    assert {"TZ", "WANTED"}.isdisjoint(small_environment(["WANTED"]))


def test_a_variable_named_by_the_caller_is_passed_on_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("UNWANTED", "no")
    kept = small_environment(["WANTED"])
    assert kept["WANTED"] == "yes"
    assert "UNWANTED" not in kept
    assert "PATH" in kept
    assert "WANTED" not in small_environment()


def test_an_extra_variable_is_added_and_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/real")
    monkeypatch.setenv("WANTED", "outer")
    kept = small_environment(["WANTED"], {"HOME": "/home/other", "NEW": "1", "WANTED": "given", "LD_PRELOAD": "meant"})
    assert (kept["HOME"], kept["NEW"], kept["WANTED"], kept["LD_PRELOAD"]) == ("/home/other", "1", "given", "meant")


def test_making_the_small_environment_changes_nothing_of_ours() -> None:
    before = dict(os.environ)
    small_environment(["HOME"], {"NEW": "1"})["X"] = "y"
    assert dict(os.environ) == before


def test_a_command_gets_the_small_environment_unless_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD_TEST", "x")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("HOME", "/home/somebody")
    result = run_command([ENV], cwd=tmp_path, timeout=GUARD)
    seen = environment_of(result)
    seen.pop("__CF_USER_TEXT_ENCODING", None)  # macOS adds it
    assert seen == small_environment()
    assert "secret" not in result.output


@pytest.mark.parametrize("given", [{}, {"ONLY": "this"}])
def test_a_command_gets_exactly_the_environment_it_is_given(tmp_path: Path, given: dict[str, str]) -> None:
    seen = environment_of(run_command([ENV], cwd=tmp_path, timeout=GUARD, env=given))
    seen.pop("__CF_USER_TEXT_ENCODING", None)
    assert seen == given


# --- when it can't be started


def refusal(argv: list[str], cwd: Path) -> str:
    with pytest.raises(CommandNotRunnableError) as caught:
        run_command(argv, cwd=cwd, timeout=GUARD)
    assert isinstance(caught.value, DonewhenError)
    return str(caught.value)


@pytest.mark.parametrize("name", ["no-such-command-anywhere", "./missing", "/nowhere/missing"])
def test_a_command_that_does_not_exist_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # a folder there that may not be searched gives another answer
    message = refusal([name, "argument"], tmp_path)
    assert_sentences(message)


def test_a_file_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o644)
    assert_sentences(refusal(["./script"], tmp_path))


def test_a_folder_is_not_a_command(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert_sentences(refusal(["./folder"], tmp_path))


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"\x00\x01\x02")
    (tmp_path / "data").chmod(0o755)
    assert_sentences(refusal(["./data"], tmp_path))


def test_a_missing_folder_to_run_in_is_named_instead_of_the_command(tmp_path: Path) -> None:
    message = refusal(["true"], tmp_path / "gone")
    assert str(tmp_path / "gone") in message
    assert "'true'" not in message


def test_a_file_is_no_folder_to_run_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refusal(["true"], tmp_path / "file")


def test_a_folder_whose_name_is_too_long_is_refused(tmp_path: Path) -> None:
    assert "working directory" in refusal(["true"], tmp_path / ("x" * 300))


def test_a_folder_whose_name_has_a_nul_is_refused() -> None:
    assert "working directory" in refusal(["true"], Path("a\0b"))


@pytest.mark.parametrize("argv", [["tr\0ue"], ["true", "a\0b"], ["true", "\ud800"]], ids=["name", "nul", "surrogate"])
def test_words_that_no_command_can_be_given_are_refused(tmp_path: Path, argv: list[str]) -> None:
    assert_sentences(refusal(argv, tmp_path))


def test_no_words_at_all_are_refused(tmp_path: Path) -> None:
    assert_sentences(refusal([], tmp_path))


def test_an_empty_command_name_is_refused(tmp_path: Path) -> None:
    assert "''" in refusal([""], tmp_path)


@pytest.mark.parametrize("env", [{"A": "a\0b"}, {"A=B": "c"}], ids=["nul", "equals sign"])
def test_an_environment_that_can_not_be_is_refused(tmp_path: Path, env: dict[str, str]) -> None:
    with pytest.raises(CommandNotRunnableError):
        run_command(["/bin/sh", "-c", "exit 0"], cwd=tmp_path, timeout=GUARD, env=env)


AS_A_NORMAL_USER = """
import os
from pathlib import Path
from donewhen.foundation.process import CommandNotRunnableError, run_command

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
here = Path.cwd()
(here / "closed" / "below").mkdir(parents=True)
(here / "closed").chmod(0)
for folder in ("closed", "closed/below"):
    try:
        run_command(["true"], cwd=here / folder, timeout=60)
    except CommandNotRunnableError as error:
        print(error.message)
(here / "closed").chmod(0o700)
"""


def test_a_folder_that_may_not_be_entered_is_named_instead_of_the_command() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)  # noqa: S103 - for the user that the test becomes
        ran = subprocess.run(
            [sys.executable, "-c", AS_A_NORMAL_USER],
            cwd=name,
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=GUARD,
        )
    lines = ran.stdout.splitlines()
    assert len(lines) == 2, ran.stderr
    assert "/closed" in lines[0]
    assert "/closed/below" in lines[1]
    assert "'true'" not in ran.stdout


def test_a_command_may_be_given_as_any_sequence_of_words(tmp_path: Path) -> None:
    assert run_command(tuple(shlex.split("/bin/sh -c 'exit 4'")), cwd=tmp_path, timeout=GUARD).exit_code == 4
