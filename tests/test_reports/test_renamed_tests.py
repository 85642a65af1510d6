"""A renamed or moved test is recognised; a test that says less, or sees another world, is another test."""

from __future__ import annotations

import pytest

from donewhen.test_reports.renamed_tests import renamed_tests

SOURCE = '''
"""The shop."""
import logging
import pytest
from shop import total
from .helpers import price

LIMIT = 3
logger = logging.getLogger(__name__)


def helper(amount):
    """Helps."""
    return amount + LIMIT


@pytest.fixture
def cart():
    return [helper(1)]


class TestCart:
    """Tests."""

    size = 2

    def setup_method(self):
        self.count = 1

    @pytest.fixture
    def basket(self):
        return [1]

    def check(self, value):
        assert value == 4

    @pytest.mark.parametrize(("a", "b"), [(2, 3)])
    def test_total(self, a, b, basket):
        """Says so."""
        assert total(a) == b  # a comment
        self.check(helper(1))

    def test_other(self):
        pass


def test_plain(cart, limit=3):
    """Plain."""
    assert total(cart) == LIMIT
'''
LOST = ["tests.test_shop.TestCart::test_total[2-3]", "tests.test_shop::test_plain"]
NEW = ["tests.test_store.TestBasket::test_sum[2-3]", "tests.test_store::test_simple"]
RENAMED = (
    SOURCE.replace("TestCart", "TestBasket").replace("test_total", "test_sum").replace("test_plain", "test_simple")
)


def _renamed(new_source: str, old_source: str = SOURCE, **others: str) -> dict[str, str]:
    return renamed_tests(LOST, NEW, {"tests/test_shop.py": old_source}, {"tests/test_store.py": new_source, **others})


def test_a_new_name_of_test_class_and_module_is_recognised() -> None:
    assert _renamed(RENAMED) == dict(zip(LOST, NEW, strict=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Says so."""', '"""Says something else."""'),
        ('        """Says so."""\n', ""),
        ("  # a comment", ""),
        ("assert total(a) == b", "assert (\n            total( a ) == b\n        )"),
        ('"""Helps."""', '"""Helps a lot."""'),
        ("    def test_other(self):\n        pass\n", "    def test_new(self):\n        assert total(1)\n"),
        ("\nLIMIT = 3\n", "\nLIMIT = 3\nUNUSED = 4\n"),
        ("import pytest\n", "import os\nimport pytest\n"),
        ("class TestBasket:", "def unused(): return 1\n\n\nclass TestBasket:"),
        ("    size = 2\n", "    size = 2\n\n    def unused(self): return 1\n"),
        ("LIMIT = 3", 'if __name__ == "__main__":\n    pytest.main()\nLIMIT = 3'),
        ("\n", "\r\n"),
    ],
)
def test_what_is_not_the_tests_does_not_count(old: str, new: str) -> None:
    assert old in RENAMED

    assert _renamed(RENAMED.replace(old, new)) == dict(zip(LOST, NEW, strict=True))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assert total(a) == b", "assert total(a)"),
        ("assert total(a) == b", "assert total(a) == b or True"),
        ("assert total(a) == b", "pass"),
        ("[(2, 3)]", "[(2, 2)]"),
        ("@pytest.mark.parametrize", "@pytest.mark.skip\n    @pytest.mark.parametrize"),
        ("def test_sum(self, a, b, basket)", "def test_sum(self, a, b, basket, total=len)"),
        ("def test_sum(self, a", "async def test_sum(self, a"),
        ("class TestBasket:", "@pytest.mark.xfail\nclass TestBasket:"),
        ("class TestBasket:", "class TestBasket(Other):"),
        ("size = 2", "size = 3"),
        ("size = 2", "size = 2; pytestmark = pytest.mark.skip"),
        ("self.count = 1", "self.count = 2"),
        ("return [1]", "return [2]"),
        ("assert value == 4", "assert value"),
        ("return amount + LIMIT", "return 4"),
        ("LIMIT = 3", "LIMIT = 4"),
        ("LIMIT = 3", "LIMIT = 3\nLIMIT = 4"),
        ("from shop import total", "from fake import total"),
        ("from shop import total", "def total(a): return 3"),
        ("from shop import total", "from shop import total\nfrom fake import *"),
        ("from shop import total", "import shop\nfrom shop import total\nshop.total = len"),
        ("from shop import total", "from shop import total\ntotal.__code__ = len"),
        ("from shop import total", "from shop import total\n_ = patch('shop.total').start()"),
        ("from shop import total", "from shop import total\nif patch('shop.total').start(): pass"),
        ("class TestBasket:", "class Unused:\n    x = patch('shop.total').start()\n\n\nclass TestBasket:"),
        ("class TestBasket:", "def unused(x=patch('shop.total').start()): pass\n\n\nclass TestBasket:"),
        ("class TestBasket:", "def weaken(f): pass\n@weaken\ndef unused(): pass\n\n\nclass TestBasket:"),
        ("    size = 2\n", "    size = 2\n\n    def _callTestMethod(self, method): pass\n"),
        ("    size = 2\n", "    size = 2\n\n    def __getattribute__(self, name): pass\n"),
        ("    size = 2\n", "    size = 2\n\n    @pytest.fixture(autouse=True)\n    def test_patch(self): pass\n"),
        ("    def test_other(self):", "    test_sum = None\n\n    def test_other(self):"),
        ("LIMIT = 3", "LIMIT = 3\ndef setup_function(): pass"),
        ("LIMIT = 3", "LIMIT = 3\n@pytest.fixture(autouse=True)\ndef everywhere(): pass"),
        ("LIMIT = 3", "LIMIT = 3\ndef pytest_generate_tests(metafunc): pass"),
        ("LIMIT = 3", "LIMIT = 3\npytestmark = pytest.mark.skip"),
        ("LIMIT = 3", "LIMIT = 3\n@pytest.fixture(name='basket')\ndef other(): return 1"),
    ],
)
def test_a_test_that_says_something_else_is_another_one(old: str, new: str) -> None:
    assert old in RENAMED

    assert LOST[0] not in _renamed(RENAMED.replace(old, new))


def test_a_rebound_test_is_another_one() -> None:
    for line in ("TestBasket = None", "from weak import TestBasket", "x = (TestBasket := None)", "del TestBasket"):
        assert LOST[0] not in _renamed(f"{RENAMED}\n{line}\n"), line


def test_a_fixture_of_the_module_counts_only_for_tests_that_ask_for_it() -> None:
    assert _renamed(RENAMED.replace("return [helper(1)]", "return [3]")) == {LOST[0]: NEW[0]}


def test_the_parameters_must_be_the_same() -> None:
    assert renamed_tests(
        ["a::test_x[1]", "a::test_x[2]"], ["a::test_y[2]", "a::test_y"], {"a.py": "def test_x(n): pass"},
        {"a.py": "def test_y(n): pass"},
    ) == {"a::test_x[2]": "a::test_y[2]"}  # fmt: skip


def test_two_lost_tests_are_never_one_new_test() -> None:
    old = "def test_a(): check()\ndef test_b(): check()\n"

    found = renamed_tests(["t::test_a", "t::test_b"], ["t::test_c"], {"t.py": old}, {"t.py": "def test_c(): check()"})

    assert found == {"t::test_a": "t::test_c"}


def test_tests_of_the_same_code_keep_what_they_have_in_common() -> None:
    old = "class TestA:\n    def test_x(self): pass\n    def test_y(self): pass\n"
    new = old.replace("TestA", "TestB")

    found = renamed_tests(
        ["t.TestA::test_x", "t.TestA::test_y"], ["t.TestB::test_y", "t.TestB::test_x"], {"t.py": old}, {"t.py": new}
    )

    assert found == {"t.TestA::test_x": "t.TestB::test_x", "t.TestA::test_y": "t.TestB::test_y"}


MOVED_OLD = "from .helpers import check\nfrom pathlib import Path\n\n\ndef test_a(client):\n    check({use})\n"


@pytest.mark.parametrize(
    ("use", "old_path", "new_path", "new_import", "same"),
    [
        ("1", "tests/test_a.py", "tests/test_b.py", ".helpers", True),
        ("1", "tests/test_a.py", "tests/unit/test_b.py", "..helpers", True),
        ("1", "tests/test_a.py", "tests/unit/test_b.py", "tests.helpers", True),
        ("1", "tests/test_a.py", "tests/unit/test_b.py", ".helpers", False),
        ("Path(__file__).parent", "tests/test_a.py", "tests/test_b.py", ".helpers", True),
        ("Path(__file__).resolve().parents[1]", "tests/test_a.py", "tests/test_b.py", ".helpers", True),
        ("os.path.dirname(os.path.abspath(__file__))", "tests/test_a.py", "tests/test_b.py", ".helpers", True),
        ("Path(__file__).parent", "tests/test_a.py", "tests/unit/test_b.py", "..helpers", False),
        ("Path(__file__).with_suffix('.json')", "tests/test_a.py", "tests/test_b.py", ".helpers", False),
    ],
)
def test_a_moved_test_is_the_same_if_it_sees_the_same(
    use: str, old_path: str, new_path: str, new_import: str, same: bool
) -> None:
    old = MOVED_OLD.format(use=use)
    new = old.replace(".helpers", new_import)
    old_id, new_id = (f"{path.removesuffix('.py').replace('/', '.')}::test_a" for path in (old_path, new_path))

    assert (renamed_tests([old_id], [new_id], {old_path: old}, {new_path: new}) == {old_id: new_id}) is same


@pytest.mark.parametrize(
    "others",
    [
        {"tests/unit/conftest.py": "import pytest\n@pytest.fixture\ndef client(): pass"},
        {"tests/unit/__init__.py": "import shop\nshop.total = len"},
        {"tests/conftest.py": "("},
    ],
)
def test_a_test_that_moves_to_other_fixtures_is_another_one(others: dict[str, str]) -> None:
    old, new = {"tests/test_a.py": "def test_a(client): pass"}, {"tests/unit/test_a.py": "def test_a(client): pass"}
    ids = ["tests.test_a::test_a"], ["tests.unit.test_a::test_a"]

    assert renamed_tests(*ids, old, new | {"tests/unit/__init__.py": ""}) == {ids[0][0]: ids[1][0]}
    assert renamed_tests(*ids, old, new | others) == {}


@pytest.mark.parametrize("line", ["from tests.helpers import check", "import tests.helpers", "import helpers"])
@pytest.mark.parametrize("at_import", [True, False])
def test_imported_test_code_must_be_as_agreed(line: str, at_import: bool) -> None:
    old = f"{line}\ndef test_a(): check()" if at_import else f"def test_a():\n    {line}\n    check()"
    new = old.replace("test_a", "test_b")
    helpers = "def check(): assert shop.total() == 1"
    ids = ["tests.test_a::test_a"], ["tests.test_b::test_b"]
    agreed = {"tests/test_a.py": old, "tests/helpers.py": helpers}

    same = renamed_tests(*ids, agreed, {"tests/test_b.py": new, "tests/helpers.py": f"# so\n{helpers}"})
    weaker = renamed_tests(*ids, agreed, {"tests/test_b.py": new, "tests/helpers.py": "def check(): pass"})

    assert same == {ids[0][0]: ids[1][0]}
    assert weaker == {}


def test_product_code_may_change() -> None:
    old, new = "import shop\ndef test_a(): shop.x()", "import shop\ndef test_b(): shop.x()"

    found = renamed_tests(
        ["tests.test_a::test_a"],
        ["tests.test_a::test_b"],
        {"tests/test_a.py": old, "src/shop.py": "def x(): pass"},
        {"tests/test_a.py": new, "src/shop.py": "def x(): return 1"},
    )

    assert found == {"tests.test_a::test_a": "tests.test_a::test_b"}


@pytest.mark.parametrize(
    "body",
    [
        "def test_a(snapshot): assert total() == snapshot",
        "def test_a(data_regression): data_regression.check(total())",
        "def test_a(request): compare(request.node.name)",
        "class TestA(TestCase):\n    def test_a(self): self.assertMatchSnapshot(total())",
    ],
)
def test_a_test_that_compares_with_a_file_of_its_name_is_another_one(body: str) -> None:
    old, new = ("t.TestA::test_a", "t.TestA::test_b") if "class" in body else ("t::test_a", "t::test_b")

    assert renamed_tests([old], [new], {"t.py": body}, {"t.py": body.replace("test_a", "test_b")}) == {}


def test_tests_of_a_base_class_in_the_module_are_found() -> None:
    source = "class Base:\n    def test_a(self): assert self.n\nclass TestA(Base):\n    n = 1\n"

    found = renamed_tests(
        ["t.TestA::test_a"], ["t.TestB::test_a"], {"t.py": source}, {"t.py": source.replace("TestA", "TestB")}
    )
    weaker = source.replace("TestA", "TestB").replace("assert self.n", "pass")

    assert found == {"t.TestA::test_a": "t.TestB::test_a"}
    assert renamed_tests(["t.TestA::test_a"], ["t.TestB::test_a"], {"t.py": source}, {"t.py": weaker}) == {}


def test_two_modules_become_one() -> None:
    a = "import sys\nsys.path.append('a')\ndef test_a(): one()\n"
    b = "import sys\nsys.path.append('b')\ndef test_b(): two()\n"
    both = "import sys\nsys.path.append('a')\nsys.path.append('b')\ndef test_1(): one()\ndef test_2(): two()\n"

    found = renamed_tests(
        ["a::test_a", "b::test_b"], ["c::test_1", "c::test_2"], {"a.py": a, "b.py": b}, {"c.py": both}
    )
    without = both.replace("sys.path.append('b')\n", "")

    assert found == {"a::test_a": "c::test_1", "b::test_b": "c::test_2"}
    assert renamed_tests(["b::test_b"], ["c::test_2"], {"a.py": a, "b.py": b}, {"c.py": without}) == {}


def test_a_statement_of_the_new_module_that_changes_what_the_test_uses_counts() -> None:
    loop = "CASES = [1]\ndef test_a():\n    for case in CASES: check(case)\n"
    agreed = {"a.py": loop, "b.py": "CASES = [2]\nCASES.clear()\ndef test_b(): pass\n"}
    moved = loop.replace("\ndef", "\nCASES.clear()\ndef").replace("test_a", "test_c")

    assert renamed_tests(["a::test_a"], ["b::test_c"], agreed, {"b.py": moved}) == {}
    assert renamed_tests(["a::test_a"], ["b::test_c"], agreed, {"b.py": moved.replace("CASES.clear()", "")})


def test_ids_from_another_folder_are_found_if_only_one_file_fits() -> None:
    old, new = {"sub/tests/test_a.py": "def test_a(): x()"}, {"sub/tests/test_a.py": "def test_b(): x()"}
    twice = {"tests/test_a.py": "def test_a(): x()"}

    assert renamed_tests(["tests.test_a::test_a"], ["tests.test_a::test_b"], old, new)
    assert renamed_tests(["room.sub.tests.test_a::test_a"], ["room.sub.tests.test_a::test_b"], old, new)
    assert not renamed_tests(["tests.test_a::test_a"], ["tests.test_a::test_b"], old | twice, new)


DEEP = 200_000


@pytest.mark.parametrize(
    "body",
    [
        "(",
        "x" + ".a" * DEEP,
        "-" * DEEP + "1",
        "1" + "+1" * DEEP,
        "x" + "()" * DEEP,
        "[" * 5000,
        "if x: pass\n    " + "elif x: pass\n    " * 20_000,
        "x = 0x" + "f" * 20_000,
        "x = " + "1" * 20_000,
        "x = '\ud800'",
        "x = '\x00'",
        "#" * (2 << 20),
    ],
    ids=lambda body: body[:9].encode("ascii", "replace").decode(),
)
def test_hostile_sources_are_no_crash(body: str) -> None:
    source = f"def test_a():\n    {body}\n"

    found = renamed_tests(["t::test_a"], ["t::test_b"], {"t.py": source}, {"t.py": source.replace("test_a", "test_b")})

    assert found in ({}, {"t::test_a": "t::test_b"})


def test_code_that_is_nearly_too_deep_is_compared() -> None:
    chain = "1" + "+1" * 900

    found = renamed_tests(
        ["t::test_a"], ["t::test_b"], {"t.py": f"def test_a(): {chain}"}, {"t.py": f"def test_b(): {chain}"}
    )

    assert found == {"t::test_a": "t::test_b"}


@pytest.mark.parametrize("test_id", ["", "::", "t", "t::", "::test_a", "t::[", "t..::test_a", "t.T.T::test_a"])
def test_odd_ids_are_not_found(test_id: str) -> None:
    source = {"t.py": "def test_a(): pass"}

    assert renamed_tests([test_id], ["t::test_a"], source, source) == {}
