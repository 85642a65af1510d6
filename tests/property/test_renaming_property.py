"""Renamed tests: names, comments and formatting never matter, any other change does, and nothing crashes."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from donewhen.test_reports.renamed_tests import renamed_tests

NAMES = st.from_regex(r"[a-z]{3,8}", fullmatch=True).filter(lambda name: name not in ("def", "not", "and", "for"))
STATEMENTS = st.sampled_from(
    [
        "assert total(1) == 2",
        "assert helper(2)",
        "x = [LIMIT for _ in range(3)]",
        "with raises(ValueError): total(None)",
        "for n in CASES: assert n",
        "assert cart == {1: 'a'}",
    ]
)
BODIES = st.lists(STATEMENTS, min_size=1, max_size=4)
MODULE = "from shop import total\nLIMIT = 3\nCASES = [1, 2]\ndef helper(n): return n < LIMIT\n\n"


def _function(name: str, body: list[str], indent: str = "") -> str:
    lines = "".join(f"{indent}    {line}\n" for line in body)
    return f"{indent}def test_{name}({'self, ' if indent else ''}cart=1):\n{lines}"


@st.composite
def _modules(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The tests of a module and of its class, with their bodies."""
    functions = draw(st.dictionaries(NAMES, BODIES, max_size=4))
    methods = draw(st.dictionaries(NAMES, BODIES, max_size=4))
    return functions, methods


def _source(functions: dict[str, list[str]], methods: dict[str, list[str]], owner: str) -> str:
    source = MODULE + "".join(_function(name, body) for name, body in functions.items())
    if methods:
        source += f"class Test{owner}:\n" + "".join(_function(name, body, "    ") for name, body in methods.items())
    return source


def _ids(module: str, functions: dict[str, list[str]], methods: dict[str, list[str]], owner: str) -> list[str]:
    return [f"{module}::test_{name}" for name in functions] + [f"{module}.Test{owner}::test_{name}" for name in methods]


@given(_modules(), st.data())
def test_whatever_the_names_are_a_test_is_found_again(
    tests: tuple[dict[str, list[str]], dict[str, list[str]]], data: st.DataObject
) -> None:
    functions, methods = tests
    fresh = data.draw(st.lists(NAMES, min_size=8, max_size=8, unique=True))
    new_functions = {f"{name}_{new}": body for (name, body), new in zip(functions.items(), fresh, strict=False)}
    new_methods = {f"{name}_{new}": body for (name, body), new in zip(methods.items(), fresh[4:], strict=False)}
    lost = _ids("tests.test_a", functions, methods, "Cart")
    new = _ids("tests.test_b", new_functions, new_methods, "Basket")
    source = _source(new_functions, new_methods, "Basket").replace("LIMIT = 3", "LIMIT  =  3  # so\n")

    found = renamed_tests(
        lost, new, {"tests/test_a.py": _source(functions, methods, "Cart")}, {"tests/test_b.py": source}
    )

    assert set(found) == set(lost)
    assert len(set(found.values())) == len(found)
    for old_id, new_id in found.items():
        in_class = ".Test" in old_id
        assert (".Test" in new_id) is in_class
        old_body = (methods if in_class else functions)[old_id.rpartition("test_")[2]]
        assert old_body == (new_methods if in_class else new_functions)[new_id.rpartition("::test_")[2]]


@given(BODIES, BODIES, st.booleans())
def test_only_the_same_body_is_the_same_test(old: list[str], new: list[str], in_class: bool) -> None:
    indent, group = ("    ", ".TestA") if in_class else ("", "")
    head = MODULE + ("class TestA:\n" if in_class else "")
    sources = [head + _function(name, body, indent) for name, body in (("a", old), ("b", new))]

    found = renamed_tests([f"t{group}::test_a"], [f"t{group}::test_b"], {"t.py": sources[0]}, {"t.py": sources[1]})

    assert bool(found) is (old == new)


CHANGES = {
    "LIMIT = 3": "LIMIT = 4",
    "CASES = [1, 2]": "CASES = []",
    "def helper(n): return n < LIMIT": "def helper(n): return True or n < LIMIT",
    "from shop import total": "from fake import total",
}


@given(BODIES, st.sampled_from(list(CHANGES)))
def test_what_a_test_uses_in_its_module_is_part_of_it(body: list[str], line: str) -> None:
    old = MODULE + _function("a", body)
    new = MODULE.replace(line, CHANGES[line])
    text = "".join(body)
    uses = {
        "LIMIT = 3": "LIMIT" in text or "helper" in text,
        "CASES = [1, 2]": "CASES" in text,
        "def helper(n): return n < LIMIT": "helper" in text,
        "from shop import total": "total" in text,
    }

    found = renamed_tests(["t::test_a"], ["t::test_b"], {"t.py": old}, {"t.py": new + _function("b", body)})

    assert bool(found) is not uses[line]


TEXTS = st.text(st.sampled_from("def test_a(x):\n    class@=[]'\"\\.#1*\x00\ud800é"), max_size=60)


@given(TEXTS, TEXTS, st.text(max_size=20), st.text(max_size=20))
def test_no_text_is_a_crash(old: str, new: str, lost: str, found: str) -> None:
    ids = ["t::test_a", "t.x::test_a", lost], ["t::test_a", found]

    renames = renamed_tests(*ids, {"t.py": old, "t/__init__.py": new}, {"t.py": new, "conftest.py": old})

    assert set(renames) <= set(ids[0])
    assert set(renames.values()) <= set(ids[1])
    assert not renames or ast.parse(old)
