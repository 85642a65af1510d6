"""Which lines are looked at, in which order changes are tried, and which tests can reach them."""

from __future__ import annotations

from donewhen.mutation.changed_lines import changed_lines
from donewhen.mutation.doubt import CodeSigns, doubt, sign_values
from donewhen.mutation.reaching import reaching_tests
from donewhen.mutation.sampling import spread


def test_changed_lines_are_those_that_the_file_did_not_have() -> None:
    assert changed_lines("a\nb\nc\n", "a\nx\nc\nd\n") == {2, 4}
    assert changed_lines("a\nb\n", "a\nb\n") == frozenset()
    assert changed_lines("a\nb\n", "b\n") == frozenset()
    assert changed_lines(None, "a\nb\n") == {1, 2}


def test_every_place_comes_once_before_any_comes_again() -> None:
    items = [(line, number) for line in range(5) for number in range(3)]
    order = spread(items, lambda item: item[0], "seed")
    assert sorted(order) == items
    assert {line for line, _ in order[:5]} == set(range(5))
    assert spread(items, lambda item: item[0], "seed") == order
    assert spread(items, lambda item: item[0], "another") != order


SOURCES = {
    "src/shop/__init__.py": "",
    "src/shop/price.py": "def total(): ...\n",
    "src/shop/cart.py": "from .price import total\n",
    "src/shop/mail.py": "import smtplib\n",
    "tests/test_price.py": "from shop.price import (\n    total,\n)\n",
    "tests/test_cart.py": "import shop.cart as cart\n",
    "tests/test_mail.py": "from shop import mail\n",
    "tests/test_patched.py": "from unittest import mock\n\nmock.patch('shop.price')\n",
    "tests/api/conftest.py": "from shop import cart\n",
    "tests/api/test_api.py": "def test(client): ...\n",
}
TESTS = [name for name in SOURCES if "/test_" in name]


def test_tests_reach_what_they_import_in_some_steps() -> None:
    reached = reaching_tests(SOURCES, ["src/shop/price.py"], TESTS)
    assert reached == ("tests/api/test_api.py", "tests/test_cart.py", "tests/test_patched.py", "tests/test_price.py")
    assert reaching_tests(SOURCES, ["src/shop/mail.py"], TESTS) == ("tests/test_mail.py",)


def test_a_change_of_a_package_reaches_everything_that_imports_from_it() -> None:
    assert set(reaching_tests(SOURCES, ["src/shop/__init__.py"], TESTS)) == set(TESTS)


def test_changed_tests_reach_themselves_and_unknown_files_nothing() -> None:
    assert reaching_tests(SOURCES, ["tests/test_mail.py"], TESTS) == ("tests/test_mail.py",)
    assert reaching_tests(SOURCES, ["tool.py"], TESTS) == ()


def test_doubt_grows_with_each_sign() -> None:
    little = CodeSigns(possible=4, tried=4, unnoticed=0, large=4, large_failing=0)
    assert sign_values(CodeSigns(0, 0, 0)) == (0.0, 0.0, 0.0)
    for more in (
        CodeSigns(40, 4, 0, 4, 0),
        CodeSigns(4, 4, 2, 4, 0),
        CodeSigns(4, 4, 0, 4, 4),
    ):
        assert doubt(more) > doubt(little)
