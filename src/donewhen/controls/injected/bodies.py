"""What the controls are: test functions and test cases that fail or pass, with drawn names and values."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_BODIES = {
    ("function", "fail"): """
def NAME():
    result = [LEFT, {"name": WORD}]
    assert result == [RIGHT, {"name": WORD}]
""",
    ("testcase", "fail"): """
class CLASS(TestCase):
    def NAME(self):
        result = [LEFT, {"name": WORD}]
        self.assertEqual(result, [RIGHT, {"name": WORD}])
""",
    ("function", "pass"): """
def NAME():
    result = [LEFT, {"name": WORD}]
    assert result == [LEFT, {"name": WORD}]
    refused = 0
    for left, right in ((LEFT, RIGHT), ([WORD], []), ({}, {WORD: 1}), (WORD, None)):
        try:
            assert left == right
        except AssertionError:
            refused += 1
    if refused != 4:
        raise ValueError(refused)
    try:
        with raises(KeyError):
            pass
    except BaseException as error:
        if type(error).__name__ != "Failed":
            raise
    else:
        raise ValueError(refused)
    with raises(KeyError):
        {}[WORD]
""",
    ("testcase", "pass"): """
class CLASS(TestCase):
    def NAME(self):
        self.assertEqual([LEFT, WORD], [LEFT, WORD])
        for method, values in (
            ("assertEqual", (LEFT, RIGHT)), ("assertEqual", (WORD, "")), ("assertEqual", ([LEFT], [RIGHT])),
            ("assertEqual", ({WORD: 1}, {})), ("assertEqual", ((LEFT,), ())), ("assertEqual", ({LEFT}, set())),
            ("assertTrue", (False,)), ("assertFalse", (True,)), ("assertIs", (WORD, None)), ("assertIn", (LEFT, [])),
            ("assertNotEqual", (LEFT, LEFT)), ("assertIsNone", (WORD,)), ("assertIsNotNone", (None,)),
            ("assertNotIn", (LEFT, [LEFT])), ("assertIsInstance", (LEFT, str)), ("assertGreater", (LEFT, LEFT)),
            ("assertLess", (LEFT, LEFT)), ("assertGreaterEqual", (LEFT, RIGHT)), ("assertLessEqual", (RIGHT, LEFT)),
            ("assertAlmostEqual", (LEFT, RIGHT)), ("assertCountEqual", ([LEFT], [])), ("assertRegex", (WORD, "^$")),
            ("assertListEqual", ([LEFT], [])), ("assertDictEqual", ({WORD: 1}, {})), ("assertIsNot", (WORD, WORD)),
        ):
            try:
                getattr(self, method)(*values)
            except AssertionError:
                continue
            raise ValueError(method)
        try:
            with self.assertRaises(KeyError):
                pass
        except AssertionError:
            return
        raise ValueError(WORD)
""",
}
_ENDINGS = ("More", "Also", "Extra", "Other")


def drawn(
    draw: Any, must: str, kind: str, names: Sequence[str], classes: Sequence[str], taken: set[str]
) -> tuple[str, str, str]:
    """The code of a control, and the names of its class and of its function; the names are like those given."""
    name = draw.name_like(names, taken)
    label = (draw.from_(classes) if classes else "TestCase") + draw.from_(_ENDINGS)
    while label in taken:
        label += "s"
    left = draw.below(90) + 1
    values = {
        "CLASS": label,
        "NAME": name,
        "LEFT": str(left),
        "RIGHT": str(left + draw.below(9) + 1),
        "WORD": repr(draw.from_(names) if names else name),
    }
    text = _BODIES[kind, must]
    for placeholder, value in values.items():
        text = text.replace(placeholder, value)
    return text, label, name
