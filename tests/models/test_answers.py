"""Answers under their questions: kept once, found again, also after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from donewhen.models.answer_store import AnswerStore, AnswerStoreError, question_key
from donewhen.models.roles import Case, Completion, Decode, Prompt, ReflectionRequest, RolloutRequest, Usage
from sentences import assert_sentences

ROLLOUT = RolloutRequest(Prompt("shared", "own"), {"G0": "x"}, {"text": "y"}, Decode(0.1, 0), "en")
REFLECTION = ReflectionRequest(Prompt("shared", "own"), {"G0": "x"}, (), "en", {"type": "object"}, 2, 0)
WHOLE = Completion("Verdict: pass\nReason: 有封条 \ud800", Usage(10, 5, 3), "length", -0.25, 0.002)


def test_an_answer_comes_back_as_it_was(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "deep" / "answers.db") as answers:
        assert answers.get("q") is None
        answers.put("q", WHOLE, "run 1")
        answers.put("bare", Completion("x"), "run 1")
        kept = answers.get("q")
        assert kept is not None
        assert (kept.completion, kept.payer) == (WHOLE, "run 1")
        assert isinstance(kept.completion.usage, Usage)
        bare = answers.get("bare")
        assert bare is not None
        assert bare.completion == Completion("x")
        assert answers.get("other") is None
    with AnswerStore(tmp_path / "deep" / "answers.db") as again:
        assert again.get("q") == kept


def test_the_first_answer_to_a_question_is_the_one_that_everybody_uses(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.db") as one, AnswerStore(tmp_path / "a.db") as other:
        assert one.put("q", Completion("first"), "run 1") == Completion("first")
        assert other.put("q", Completion("second"), "run 2") == Completion("first")
        for answers in (one, other):
            kept = answers.get("q")
            assert kept is not None
            assert (kept.completion.text, kept.payer) == ("first", "run 1")


def test_what_a_run_has_paid_for_is_counted_from_a_call_on(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "a.db") as answers:
        for number in range(1, 6):
            answers.put(f"q{number}", Completion("x"), "run 1" if number != 3 else "run 2", number)
        assert [answers.paid("run 1", after) for after in (0, 1, 2, 4, 5)] == [4, 3, 2, 1, 0]
        assert (answers.paid("run 2", 0), answers.paid("run 3", 0)) == (1, 0)
        kept = answers.get("q4")
        assert kept is not None
        assert kept.call == 4


def test_a_question_is_the_model_the_role_and_all_that_is_shown() -> None:
    questions = [
        question_key("m", "rollout", ROLLOUT),
        question_key("n", "rollout", ROLLOUT),
        question_key("m", "decision", ROLLOUT),
        question_key("m", "rollout", ROLLOUT._replace(prompt=Prompt("share", "down"))),
        question_key("m", "rollout", ROLLOUT._replace(prompt=Prompt("shared", "other"))),
        question_key("m", "rollout", ROLLOUT._replace(prompt=Prompt("sharedo", "wn"))),
        question_key("m", "rollout", ROLLOUT._replace(decode=Decode(0.2, 0))),
        question_key("m", "rollout", ROLLOUT._replace(decode=Decode(0.1, 1))),
        question_key("m", "decision", REFLECTION),
        question_key("m", "ops", REFLECTION),
        question_key("m", "ops", REFLECTION._replace(prompt=Prompt("shared", "other"))),
        question_key("m", "ops", REFLECTION._replace(schema={"type": "array"})),
        question_key("m", "ops", REFLECTION._replace(max_operations=3)),
    ]
    assert len(set(questions)) == len(questions)
    assert questions[0] == question_key("m", "rollout", ROLLOUT)


def test_what_the_prompt_was_made_from_does_not_change_the_question() -> None:
    same = ROLLOUT._replace(rules={}, evidence={"other": "z"})
    assert question_key("m", "rollout", same) == question_key("m", "rollout", ROLLOUT)
    case = Case("QC-1::pass", "pass", {}, "fail", "")
    assert question_key("m", "ops", REFLECTION._replace(cases=(case,))) == question_key("m", "ops", REFLECTION)


def test_asking_about_the_same_cases_again_is_another_question() -> None:
    attempts = {question_key("m", "ops", REFLECTION._replace(attempt=number)) for number in range(3)}
    assert len(attempts) == 3


@pytest.mark.parametrize("content", [b"not a database at all " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(content)
    with pytest.raises(AnswerStoreError) as caught:
        AnswerStore(path)
    assert_sentences(caught.value)
    assert caught.value.where == str(path)
    if Path("/proc/self/fd").is_dir():
        assert str(path) not in {os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()}
    path.unlink()
    AnswerStore(path).close()


def test_a_place_where_nothing_can_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "answers.db"):
        with pytest.raises(AnswerStoreError) as caught:
            AnswerStore(path)
        assert caught.value.where == str(path)


UNWRITABLE = """
import sys
from pathlib import Path
from donewhen.models.answer_store import AnswerStore, AnswerStoreReadOnlyError
try:
    AnswerStore(Path(sys.argv[1]))
except AnswerStoreReadOnlyError as error:
    print("unwritable", error.where)
"""


@pytest.mark.parametrize("there", ["nothing", "answers"])
def test_a_place_where_nothing_may_be_written_is_told_from_a_broken_file(tmp_path: Path, there: str) -> None:
    setpriv = shutil.which("setpriv")
    if not os.getuid() and setpriv is None:
        pytest.skip("NO SETPRIV: whoever is root may write anywhere")
    powerless = [] if os.getuid() else [str(setpriv), "--bounding-set=-dac_override,-dac_read_search"]
    folder = tmp_path / "runs"
    folder.mkdir()
    if there == "answers":
        with AnswerStore(folder / "a.db") as answers:
            answers.put("q", Completion("x"), "run")
    folder.chmod(0o555)
    try:
        command = [*powerless, sys.executable, "-c", UNWRITABLE, str(folder / "a.db")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        folder.chmod(0o755)
    assert done.stdout == f"unwritable {folder / 'a.db'}\n"


def test_a_database_that_is_damaged_later_is_an_error_too(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    with AnswerStore(path) as answers:
        for number in range(300):
            answers.put(f"q{number}", Completion("x" * 200), "run")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with AnswerStore(path) as answers:
        with pytest.raises(AnswerStoreError) as caught:
            for number in range(300):
                answers.get(f"q{number}")
        assert_sentences(caught.value)
        assert caught.value.where == str(path)
        with pytest.raises(AnswerStoreError):
            for number in range(300, 600):
                answers.put(f"q{number}", Completion("x" * 200), "run")


def test_answers_that_are_closed_neither_take_nor_give(tmp_path: Path) -> None:
    answers = AnswerStore(tmp_path / "answers.db")
    answers.close()
    with pytest.raises(AnswerStoreError) as caught:
        answers.put("q", Completion("x"), "run")
    assert_sentences(caught.value)
    with pytest.raises(AnswerStoreError) as caught:
        answers.get("q")
    assert_sentences(caught.value)
    with pytest.raises(AnswerStoreError) as caught:
        answers.paid("run", 0)
    assert_sentences(caught.value)


def test_answers_may_be_used_from_another_thread(tmp_path: Path) -> None:
    with AnswerStore(tmp_path / "answers.db") as answers, ThreadPoolExecutor(1) as pool:
        assert pool.submit(answers.put, "q", Completion("x"), "run").result() == Completion("x")
        assert answers.get("q") is not None


def test_who_reads_does_not_wait_for_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    with AnswerStore(path) as answers:
        answers.put("q", Completion("x"), "run")
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("begin exclusive")
        try:
            kept = answers.get("q")
        finally:
            writer.close()
    assert kept is not None
    assert kept.completion == Completion("x")


@pytest.mark.parametrize("stored", ["", "{", "[]", '["x"]', "null"])
def test_an_answer_that_is_not_one_is_an_error_that_names_the_file(tmp_path: Path, stored: str) -> None:
    path = tmp_path / "answers.db"
    with AnswerStore(path) as answers:
        answers.put("q", Completion("x"), "run")
    connection = sqlite3.connect(path)
    connection.execute("update answers set answer = ?", (stored,))
    connection.commit()
    connection.close()
    with AnswerStore(path) as answers, pytest.raises(AnswerStoreError) as caught:
        answers.get("q")
    assert_sentences(caught.value)
    assert caught.value.where == str(path)


KILLED = """
import os, signal, sys
from pathlib import Path
from donewhen.models.answer_store import AnswerStore
from donewhen.models.roles import Completion
answers = AnswerStore(Path(sys.argv[1]))
number = 0
while True:
    answers.put(f"q{number}", Completion("x" * 500), "run")
    print(number, flush=True)
    number += 1
    if number == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("count", [1, 40])
def test_a_killed_process_loses_no_answer_that_it_had(tmp_path: Path, count: int) -> None:
    path = tmp_path / "answers.db"
    command = [sys.executable, "-c", KILLED, str(path), str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(done.stdout.split()) == count
    with AnswerStore(path) as answers:
        found = [answers.get(f"q{number}") for number in range(count + 1)]
    assert [answer is not None for answer in found] == [True] * count + [False]


WRITER = """
import json, sys
from pathlib import Path
from donewhen.models.answer_store import AnswerStore
from donewhen.models.roles import Completion
with AnswerStore(Path(sys.argv[1])) as answers:
    used = [answers.put(f"q{n}", Completion(f"{sys.argv[2]} {n}"), sys.argv[2]).text for n in range(60)]
print(json.dumps(used))
"""


def test_processes_that_answer_the_same_questions_agree_in_the_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path / "answers.db")]
    writers = [
        subprocess.Popen([*command, f"run {n}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(3)
    ]
    ends: list[Any] = [writer.communicate() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], ends
    used = [json.loads(out) for out, _ in ends]
    assert used[0] == used[1] == used[2]
    with AnswerStore(tmp_path / "answers.db") as answers:
        for number, text in enumerate(used[0]):
            kept = answers.get(f"q{number}")
            assert kept is not None
            assert kept.completion.text == text == f"{kept.payer} {number}"
