"""Only new lines count: what was there before, or only moved, is nobody's question."""

from __future__ import annotations

from signs_kit import asking, signs_in

from donewhen.signs.kinds import ChangedFile
from donewhen.signs.signs import Around, signs_of_change, top_modules

CALLER = "import sys\n\n\ndef caller():\n    return sys._getframe(1).f_locals\n"


def test_lines_that_were_there_before_are_no_question() -> None:
    assert signs_in(f"{CALLER}\n\ndef more():\n    return 1\n", CALLER) == ()


def test_lines_that_moved_are_no_question() -> None:
    moved = (
        'VERSION = "2"\n\nimport sys\n\n\nclass A:\n    def caller(self):\n        return sys._getframe(1).f_locals\n'
    )
    assert signs_in(moved, CALLER) == ()


def test_lines_that_moved_to_another_file_are_no_question() -> None:
    files = [ChangedFile("src/a.py", CALLER, "A = 1\n"), ChangedFile("src/b.py", None, CALLER)]
    assert signs_of_change(files, Around()) == ()


def test_lines_of_a_removed_file_may_come_back_elsewhere() -> None:
    files = [ChangedFile("src/a.py", CALLER, None), ChangedFile("src/b.py", None, CALLER)]
    assert signs_of_change(files, Around()) == ()


def test_a_copied_line_is_a_new_one() -> None:
    copied = CALLER + "\n\ndef again():\n    return sys._getframe(1).f_locals\n"
    (sign,) = signs_in(copied, CALLER)
    assert (sign.line, sign.text) == (9, "return sys._getframe(1).f_locals")


def test_another_comment_makes_no_line_new() -> None:
    assert signs_in(CALLER.replace("f_locals\n", "f_locals  # for errors\n"), CALLER) == ()


def test_a_hash_in_a_text_hides_no_code() -> None:
    before = 'x = "a #b"\n'
    assert asking('x = "a #b"; import pytest\n', before) == ["test-machinery"]


def test_a_method_of_lines_that_were_there_is_new() -> None:
    before = "class B:\n    def __eq__(self, o):\n        return self.x == o.x\n\n\ndef f():\n    return True\n"
    after = before.replace("return self.x == o.x", "return True")
    assert asking(after, before) == ["equality"]


def test_the_body_of_a_hook_is_part_of_it() -> None:
    before = "import atexit\n\n\ndef done():\n    pass\n\n\natexit.register(done)\n"
    assert asking(before) == []
    assert asking(before.replace("pass", 'open("r", "w")'), before) == ["exit-hooks"]


def test_line_ends_make_no_line_new() -> None:
    assert signs_in(CALLER.replace("\n", "\r\n"), CALLER) == ()


def test_large_files_are_compared_line_by_line() -> None:
    before = "".join(f"x{number} = {number}\n" for number in range(20_001))
    assert asking(f"{before}import pytest\n", before) == ["test-machinery"]


def test_an_empty_change_has_no_signs() -> None:
    assert signs_of_change([], Around()) == ()
    assert signs_in("", None) == ()


def test_own_modules_are_those_at_the_top() -> None:
    names = ["src/shop/__init__.py", "src/shop/sub/__init__.py", "src/shop/sub/a.py", "tool.py", "README.md"]
    assert top_modules(names) == {"shop", "tool"}
