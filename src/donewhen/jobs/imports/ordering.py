"""Which item comes after which: an order in which all that an item depends on stands before it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.imports.items import ImportFinding, ImportItem
from donewhen.jobs.ledger.finding_codes import FindingCode


class OrderedItems(NamedTuple):
    """The items, each after what it depends on; dependencies that can't be meant are taken out, and told."""

    items: tuple[ImportItem, ...]
    findings: tuple[ImportFinding, ...]


def order_items(items: Sequence[ImportItem], known: Collection[str] = ()) -> OrderedItems:
    """Bring items into an order; ``known`` are the keys of items that are jobs already."""
    findings: list[ImportFinding] = []
    by_key = {item.key: item for item in items}
    edges: dict[str, list[str]] = {}
    for item in items:
        edges[item.key] = []
        for key in dict.fromkeys((*item.depends_on, *item.parts)):
            if key == item.key:
                findings.append(_finding(f"{item.name} depends on itself", item))
            elif key in by_key or key in known:
                edges[item.key].append(key)
            else:
                findings.append(_finding(f"{item.name} depends on {key.partition(':')[2]}, which is not there", item))
    result: list[ImportItem] = []
    for group in _groups(edges):
        together = set(group)
        if len(group) > 1:
            names = ", ".join(by_key[key].name for key in group[:6]) + (" …" if len(group) > 6 else "")
            message = f"{len(group)} items depend on each other in a circle ({names})"
            findings.append(_finding(message, by_key[group[0]]))
        for key in group:
            kept = tuple(one for one in edges[key] if one not in together)
            result.append(by_key[key]._replace(depends_on=kept))
    return OrderedItems(tuple(result), tuple(findings))


def _finding(told: str, item: ImportItem) -> ImportFinding:
    return ImportFinding(FindingCode.IMPORT_DEPENDENCY, f"{told}; that was not taken over.", item.where)


def _groups(edges: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The circles of a graph, and what is in none by itself, each after what it leads to (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for start in edges:
        if start in number:
            continue
        # A stack of our own: a chain of thousands would be too deep for Python's.
        work: list[tuple[str, Iterator[str]]] = []
        entering: str | None = start
        while entering is not None or work:
            if entering is not None:
                number[entering] = lowest[entering] = len(number)
                stack.append(entering)
                on_stack.add(entering)
                work.append((entering, iter([one for one in edges[entering] if one in edges])))
                entering = None
            node, rest = work[-1]
            after = next(rest, None)
            if after is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == number[node]:
                    place = stack.index(node) if stack[-1] != node else len(stack) - 1
                    group = stack[place:]
                    del stack[place:]
                    on_stack.difference_update(group)
                    yield group
            elif after not in number:
                entering = after
            elif after in on_stack:
                lowest[node] = min(lowest[node], number[after])
