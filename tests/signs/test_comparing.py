"""Python objects that are equal to everything, and honest ones."""

from __future__ import annotations

import pytest
from signs_kit import asking

ALWAYS = {
    "true": "class A:\n    def __eq__(self, other):\n        return True\n",
    "a lambda": "class A(int):\n    __eq__ = lambda s, o: True\n",
    "a dictionary": 'A = type("A", (), {"__eq__": lambda self, other: self is self})\n',
    "set later": "class A:\n    pass\n\n\nsetattr(A, '__eq__', lambda s, o: 1)\n",
    "or true": "class A:\n    def __eq__(self, o):\n        return super().__eq__(o) or True\n",
    "not false": "class A:\n    def __eq__(self, o):\n        return not False\n",
    "any object": "class A:\n    def __eq__(self, o):\n        return isinstance(o, object)\n",
    "the other": "class A:\n    def __eq__(self, o):\n        return o == o\n",
    "a number": "class A:\n    def __eq__(self, o):\n        x = 1\n        return 1 == 1\n",
    "not none": (
        "class A:\n    def __eq__(self, o):\n        if o is not None:\n            return True\n        return False\n"
    ),
    "ne": "class A(str):\n    def __ne__(self, o):\n        return False\n",
    "instances": "class M(type):\n    def __instancecheck__(cls, obj):\n        return True\n",
    "a switch": (
        "import os\n\n\nclass A:\n    def __eq__(self, o):\n        if os.environ.get('X'):\n"
        "            return True\n        return self.x == o.x\n"
    ),
    "another class": "class A:\n    @property\n    def __class__(self):\n        return int\n",
}


@pytest.mark.parametrize("source", ALWAYS.values(), ids=ALWAYS)
def test_what_is_equal_to_everything_is_shown(source: str) -> None:
    assert "equality" in asking(source)


HONEST = {
    "attributes": (
        "class A:\n    def __eq__(self, other):\n"
        "        if not isinstance(other, A):\n            return NotImplemented\n"
        "        return self.x == other.x\n\n    def __ne__(self, other):\n        return not self == other\n"
    ),
    "a class without state": (
        "class A:\n    def __eq__(self, other):\n        return isinstance(other, self.__class__)\n"
    ),
    "a class without state, in two steps": (
        "class A:\n    def __eq__(self, other):\n"
        "        if not isinstance(other, A):\n            return NotImplemented\n"
        "        return True\n"
    ),
    "identity first": (
        "class A:\n    def __eq__(self, other):\n        if self is other:\n            return True\n"
        "        return vars(self) == vars(other)\n"
    ),
    "elements": (
        "class A:\n    def __eq__(self, other):\n        if len(self.a) != len(other.a):\n            return False\n"
        "        for a, b in zip(self.a, other.a):\n            if a != b:\n                return False\n"
        "        return True\n"
    ),
    "infinity": (
        "class A:\n    def __lt__(self, other):\n        return False\n"
        "\n    def __gt__(self, other):\n        return True\n"
    ),
    "helpers": "class A:\n    def __eq__(self, other):\n        return self._key() == self._key_of(other)\n",
    "instances": "class M(type):\n    def __instancecheck__(cls, obj):\n        return hasattr(obj, 'x')\n",
    "members": "class A:\n    def __contains__(self, key):\n        return key in self.items\n",
    "a function": "def __eq__(a):\n    return True\n",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_comparisons_are_no_question(source: str) -> None:
    assert asking(source) == []
