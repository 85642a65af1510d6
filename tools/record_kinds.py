"""Which records are named tuples although nothing unpacks them: python -m tools.record_kinds

A record at an edge (file, wire, ledger, run event) is a ``msgspec.Struct``, a record inside is a frozen dataclass, and
a ``NamedTuple`` is for what is unpacked. ``record_kinds.txt`` lists the named tuples from before that rule. It may only
become shorter; with ``--shorten``, names that are no longer needed are removed from it.

Whether something unpacks a record is found without types: a target of as many names as the record has fields is
assigned from, or loops over, something whose annotation mentions the record. That finds too many unpackings rather than
too few, so that no record is reported wrongly.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
LIST = Path(__file__).with_name("record_kinds.txt")
_NOT_ITS_ITEMS = frozenset({"enumerate", "zip", "items", "divmod", "partition", "rpartition"})
"""Calls whose items are pairs of their own, not the records in their arguments."""


@dataclass(frozen=True)
class TupleRecord:
    """A class that derives from NamedTuple."""

    module: str
    name: str
    fields: int

    @property
    def full_name(self) -> str:
        return f"{self.module}.{self.name}"


@cache
def never_unpacked(source: Path = SOURCE) -> set[str]:
    """The full names of the named tuples that nothing in ``source`` unpacks."""
    trees = {
        ".".join(path.relative_to(source).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(source.rglob("*.py"))
    }
    records = [record for module, tree in trees.items() for record in _tuple_records(module, tree)]
    carriers = _carriers(trees.values(), {record.name for record in records})
    sites = [site for tree in trees.values() for site in _unpackings(tree)]
    return {
        record.full_name
        for record in records
        if not any(count in (record.fields, None) and names & carriers[record.name] for count, names in sites)
    }


def known_before() -> set[str]:
    """The named tuples from before the rule."""
    return set(LIST.read_text(encoding="utf-8").split())


def _tuple_records(module: str, tree: ast.Module) -> Iterator[TupleRecord]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("NamedTuple" in _names(base) for base in node.bases):
            yield TupleRecord(module, node.name, sum(isinstance(item, ast.AnnAssign) for item in node.body))


def _carriers(trees: Iterable[ast.Module], records: set[str]) -> defaultdict[str, set[str]]:
    """For each record: the names of functions, parameters, fields and variables whose annotation mentions it."""
    carriers: defaultdict[str, set[str]] = defaultdict(set)
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case (
                    ast.FunctionDef(name=name, returns=annotation) | ast.AsyncFunctionDef(name=name, returns=annotation)
                ):
                    pass
                case ast.arg(arg=name, annotation=annotation):
                    pass
                case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=annotation):
                    pass
                case _:
                    continue
            for record in records & _names(annotation):
                carriers[record].add(name)
    for record in records:
        carriers[record].add(record)
    return carriers


def _unpackings(tree: ast.Module) -> Iterator[tuple[int | None, set[str]]]:
    """Every place that unpacks: the number of targets (None if one is starred), and the names in what is unpacked."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _targets(target, value)
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                yield from _targets(target, value)
            case ast.comprehension(target=target, iter=value):
                yield from _targets(target, value)
            case ast.Starred(value=value, ctx=ast.Load()):
                yield None, _names(value)


def _targets(target: ast.expr, value: ast.expr, *, nested: bool = False) -> Iterator[tuple[int | None, set[str]]]:
    if not isinstance(target, ast.Tuple | ast.List):
        return
    starred = any(isinstance(item, ast.Starred) for item in target.elts)
    called = value.func if isinstance(value, ast.Call) else None
    own = {getattr(called, "id", None), getattr(called, "attr", None)}
    if nested or not own & _NOT_ITS_ITEMS:
        yield None if starred else len(target.elts), _names(value)
    for item in target.elts:
        yield from _targets(item, value, nested=True)


def _names(node: ast.AST | None) -> set[str]:
    """All names in an expression; annotations may be strings."""
    if node is None:
        return set()
    found: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.Constant(value=str(text)):
                found.update(text.replace("[", " ").replace("]", " ").replace("|", " ").replace(",", " ").split())
    return found


def main(arguments: list[str]) -> int:
    found, known = never_unpacked(), known_before()
    if arguments == ["--shorten"]:
        LIST.write_text("".join(f"{name}\n" for name in sorted(found & known)), encoding="utf-8")
    for name in sorted(found - known):
        print(f"{name} is a NamedTuple, but nothing unpacks it: make it a frozen dataclass.")
    return 1 if found - known else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
