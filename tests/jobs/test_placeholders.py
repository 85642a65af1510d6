"""Text that was never written: templates in any spelling are found, and short honest texts are not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from donewhen.jobs.plan.criteria import Check, Criterion
from donewhen.jobs.plan.placeholders import (
    describes_verification,
    is_placeholder,
    is_unedited,
    is_weak,
    written_lines,
)
from donewhen.jobs.plan.short_data import is_data, is_records

RUN = Check("run", "true", argv=("true",))
UNEDITED = [
    "_Make these objective and checkable._", "Make these objective and checkable", "State the objective",
    "**State the objective for this job.**", "_List required inputs (files, links, constraints)._",
    "_Describe how we will prove acceptance criteria are satisfied._", "to be filled", "_Optional checklist items_",
    "_To be filled at job start by lessons retrieval._", "_Workstream-level dependencies._",
    "_Explain how this workstream supports the project goal._", "Auto-populated at job start",
    "[What must be true for this to be done? Replace this line.]",
    "What must be true for this to be done? Replace this line.",
    "(TBD)", "[TBD]", "{{criterion}}", "“TBD”", "\uff34\uff22\uff24", "__TBD__",
    "~~todo~~", "to do", "To-Do", "TBA", "Lorem", "lorem ipsum dolor", "...", "\u2026", "___",
    "<describe the result>", "<!-- criteria -->", "_What does success look like?_", "*List the outputs*",
    "Your criteria here", "Add criteria here", "First criterion", "待定", "【待填写】",
    "T.B.D.", "t b d", "n.a.", "? ?", "-- --", "\u2800 \u2800", "\u3164", "t\u043e be filled", "\u0422\u0412D",
    "\u1d1b\u0299\u1d05", "待 定", "to be filled\u2026", "to be filled...", "to be filled?",
    '_Define what "done" means (outputs + checks)._', "_Describe the goal in plain language._", "List deliverables",
    "_Describe how we will prove acceptance criteria are satisfied, and what evidence files will be written._",
    "_List outputs and where they will live (match `outputs:` frontmatter)._", "Make them objective and checkable.",
    "How we'll prove acceptance criteria are met.",
]  # fmt: skip
FILLER = [
    "TODO: write", "The result is <describe the result>", "It returns [to be decided] rows", "Fill this out later",
    "Step 1", "Command: TBD", "Expected: ...", "Test evidence: to be added", "will be defined later",
    "Details will be defined later", "to be determined by the team", "Scope needs to be defined",
    "tbd later", "TBD (later)", "ok \U0001f44d", "Criterion #1",
    "to be filled - later", "to be filled (later)", "o.k.", "ok/ok", "ok ok", "done \u2705", "TBD TBD",
    "criteria go here", "Replace me with criteria", "Replace this text with real criteria", "State the job objective",
    "noch offen", "zu definieren", "à définir", "por definir", "待定义", "待补", "待讨论", "已完成", "没有问题",
    "未定です", "확인", "확인했습니다", "문제 없음", "ok", "OK.", "done", "yes", "`fine`", "well-done", "sí", "готово",
    "ok 1", "ok\u2122", "ok <!-- see the report of the team -->", "ok&nbsp;", "ok<br>", "ok \U0001f1fa\U0001f1f8",
    "Some criteria", "This is a placeholder criterion.", "Not decided", "not defined yet", "写点什么", "Het is klaar",
    "All good", "Looks good", "Task is done", "完成", "Next step", "Add item here", "It is there", "No criteria yet",
]  # fmt: skip
HONEST = [
    "Tests pass", "Tests pass.", "It works.", "No warnings", "Exit code 0", "95% coverage", "README.md", "Output is 7",
    "test_log.py::test_last_line", "测试通过", "To be fast, it caches", "_All tests pass._", "**All tests pass**",
    "*Nothing* is lost", "List view shows inputs", "State machine rejects bad input", "Make install works",
    "Add button is shown", "Write errors are reported", "Describe is a command", "Your name is shown",
    "Step 3 of the tutorial works", "Warnings: none", "Fill rate above 90 %", "Sample size is at least 30",
    "Type hints everywhere", "GET /users/{id} gives 200", "The array equals [1, 2, 3]", 'It prints {"a": 1}',
    "The page shows `Hello <describe>`", "Optional fields may be missing", "Will not crash on empty input",
    "Todo-app starts on port 3000", "getTodos returns Promise<Todo[]>", "Describe the install steps in README.md",
    "A new task has status: todo", "WIP-limit of 3 is enforced", "list[Todo] is returned by all()",
    "To-do-Liste zeigt neue Einträge", "TODO: comments are gone from src/", "Lorem ipsum is gone from index.html",
    "Make this testable without a network", "Fill in the form and submit: a row appears",
    "Auto-populated fields are read-only", "Will be completed in under 2 s", "List outputs (one per line)",
    "Your name is shown here", "Write access is refused here", "_Name is shown in bold_", "Title is required",
    "Content type is text", "Prints ok", "Add a task", "Edit task title", "The report is there", "There is a file",
    "Users will be added", "Types are defined", "待办列表显示新任务", "没有警告",
    "State the version in --version", "Нет ошибок", "Het werkt", "The form has placeholder text in the search field",
    "A name that is not defined is an error", "Some tests are slow", "Define an API",
    "日志可读", "테스트 통과", "ログが読める", "Тесты проходят",
]  # fmt: skip


@pytest.mark.parametrize("text", UNEDITED, ids=ascii)
def test_an_unedited_template_is_found_in_any_spelling(text: str) -> None:
    assert is_placeholder(text)
    assert Criterion("AC-1", text, None, 1).placeholder
    assert Criterion("AC-1", text, RUN, 1).placeholder


@pytest.mark.parametrize("text", FILLER, ids=ascii)
def test_a_text_without_content_is_no_criterion_unless_a_check_stands_beside_it(text: str) -> None:
    assert Criterion("AC-1", text, None, 1).placeholder
    assert Criterion("AC-1", text, Check("manual"), 1).placeholder
    assert not Criterion("AC-1", text, RUN, 1).placeholder


@pytest.mark.parametrize("text", HONEST, ids=ascii)
def test_a_short_text_that_says_something_is_none(text: str) -> None:
    assert not is_placeholder(text)
    assert not Criterion("AC-1", text, None, 1).placeholder
    assert not Criterion("AC-1", text, RUN, 1).placeholder


@pytest.mark.parametrize("text", ["7", "None", "<svg/>", '{"a": 1}', "[1, 2, 3]", "[tool]", "x", "无", "Parsed"])
def test_a_value_is_enough_beside_a_check(text: str) -> None:
    assert Criterion("AC-1", text, None, 1).placeholder
    assert not Criterion("AC-1", text, RUN, 1).placeholder


@pytest.mark.parametrize("text", ["Works!", "test", "foo()", "测试", "テスト", "통과", "blah blah", "a b"])
def test_one_word_is_weak_and_no_template(text: str) -> None:
    assert is_weak(text)
    assert not is_unedited(text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- [ ] TBD\n1. todo\n> ...\n# Criteria\n* _State the goal_", []),
        ("<!-- Say how.\nIn two lines. -->\n\n- Compare the counts.", ["Compare the counts."]),
        ("*emphasis* counts", ["*emphasis* counts"]),
        ("<!-- never closed\nCompare", []),
    ],
)
def test_the_written_lines_of_a_section(text: str, lines: list[str]) -> None:
    assert written_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", False),
        ("ok", False),
        ("- ok\n- TBD", False),
        ("_Describe how._", False),
        ("Run it.", True),
        ("ok \U0001f44d", False),
        ("**Evidence:** to be added", False),
        ("### Evidence of the tests\nTBD", False),
        ("Run:\n```\npytest -q\n```", True),
    ],
)
def test_a_verification_plan_is_more_than_one_word(text: str, says: bool) -> None:
    assert describes_verification(text) is says


@pytest.mark.parametrize(
    ("text", "data", "records"),
    [
        ('{"a": 1}', True, True),
        ('{"a": 1}\n{"a": 2}\n', True, True),
        ("[1, 2, 3]", True, True),
        ("[]", True, False),
        ("7", True, False),
        ("None", True, False),
        ("{'name': 'Ada', 'n': 3}", True, True),
        ("{'a': '\\d rows left'}\n{'a': None}", True, True),
        ("{1, 2}", True, True),
        ("(1.5, 'x')", True, False),
        ("{'a': 'TBD'}", False, False),
        ("{name}", False, False),
        ('<svg width="3"/>', True, False),
        ('"TBD"', False, False),
        ('{"a": "TBD"}', False, False),
        ('{"status": "todo"}', True, True),
        ("<img src=a.png>", True, False),
        ("<p>ok</p>", True, False),
        ("<tbd>", False, False),
        ("a\n1\n2", True, False),
        ("a,b\nx,1\ny,2", True, False),
        ("ok\ndone", False, False),
        ("[What is it?]", False, False),
        ("<describe it>", False, False),
        ("TBD", False, False),
        ("x", False, False),
        ("", False, False),
        ("[" * 900, False, False),
    ],
)
def test_data_is_what_a_program_reads(text: str, data: bool, records: bool) -> None:
    assert (is_data(text), is_records(text)) == (data, records)


LONG = """
from donewhen.jobs.plan.placeholders import is_placeholder, is_unedited, is_weak, written_lines
from donewhen.jobs.plan.short_data import is_data
many = 20_000
for text in ("<" * many, "[" * many, "x" * many + "y", "(" * many, "write " + "here " * many + "x",
             "_" + "a " * many + "_", "task " + "1 " * many, ":" * many, "\u6d4b" * many, "&" * many,
             "to be done by " * many, "`" * many + "<", "<todo" * many, "." * many + "x", "your " * many, "*_" * many):
    is_placeholder(text), is_weak(text), is_unedited(text), written_lines("<!--" * 100 + text), is_data(text[:1000])
print("read")
"""


def test_no_text_however_long_takes_more_than_a_moment() -> None:
    # The limit is a hundred times what it needs; what it guards against takes hours.
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("read\n", "")


def test_an_ordinary_text_compiles_no_pattern() -> None:
    code = (
        "from donewhen.jobs.plan import placeholders as p\n"
        "p.is_placeholder('The log is parsed.'); p.is_weak('Tests pass'); p.written_lines('- Parsed it.')\n"
        "print(p._blank.cache_info().misses + p._code.cache_info().misses + p._markup.cache_info().misses)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
