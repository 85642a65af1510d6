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
    "what its text is": "class A(int):\n    def __eq__(self, o):\n        return len(repr(o)) >= 0\n",
    "the name of a class": "class A(int):\n    def __eq__(self, o):\n        return type(o).__name__ == 'int'\n",
    "any hash": "class A(int):\n    def __eq__(self, o):\n        return hash(o) > -10\n",
    "a conversion": (
        "class A(int):\n    def __eq__(self, o):\n        try:\n            return float(o) is not None\n"
        "        except ValueError:\n            return False\n"
    ),
    "no difference to itself": "class A(int):\n    def __eq__(self, o):\n        return o - o == 0\n",
    "a large range": "class A(int):\n    def __eq__(self, o):\n        return o in range(10**30)\n",
    "one of itself": "class A(int):\n    def __eq__(self, o):\n        return any(x is o for x in (o,))\n",
    "a plain number": (
        "class A(int):\n    def __eq__(self, o):\n        if isinstance(o, int):\n            return True\n"
        "        return False\n"
    ),
    "only itself": "class A(int):\n    def __eq__(self, o):\n        return self\n",
    "a helper": (
        "def same(a, b):\n    return True\n\n\nclass A(int):\n    def __eq__(self, o):\n        return same(self, o)\n"
    ),
    "another name": "class A:\n    def same(self, o):\n        return bool(repr(o))\n\n    __eq__ = same\n",
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
    "one object": "class A:\n    def __eq__(self, other):\n        return other is MISSING or other is None\n",
    "one value": "class Auto:\n    def __eq__(self, other):\n        return other == 'auto' or other in ('a', 'b')\n",
    "the same class": (
        "class A:\n    def __eq__(self, other):\n        return type(other) is A and other.x == self.x\n"
    ),
    "a text": (
        "class A:\n    def __eq__(self, o):\n        if isinstance(o, str):\n            return self.name == o\n"
        "        return NotImplemented\n"
    ),
    "a helper for keys": (
        "def same(a, b):\n    return a.key == b.key\n\n\n"
        "class A:\n    def __eq__(self, other):\n        return same(self, other)\n"
    ),
    "another name": "class A:\n    def same(self, o):\n        return self.key == o.key\n\n    __eq__ = same\n",
    "a name for the other": (
        "class A:\n    def __eq__(self, other):\n        key = other.key if isinstance(other, A) else other\n"
        "        mine = self.key\n        return mine == key\n"
    ),
    "an expression": "class Field:\n    def __eq__(self, other):\n        return Equal(self, other)\n",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST)
def test_honest_comparisons_are_no_question(source: str) -> None:
    assert asking(source) == []
