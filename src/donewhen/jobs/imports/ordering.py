"""Sort items so that each comes after its dependencies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.imports.items import ImportFinding, ImportItem
from donewhen.jobs.ledger.finding_codes import FindingCode

_MAX_LISTED = 6


@dataclass(frozen=True)
class OrderedItems:
    """The items, each after its dependencies; invalid dependencies are removed and reported."""

    items: tuple[ImportItem, ...]
    findings: tuple[ImportFinding, ...]


def order_items(
    items: Sequence[ImportItem], known: Collection[str] = (), not_selected: Collection[str] = ()
) -> OrderedItems:
    """Sort items topologically; ``known`` are the keys of items that are jobs already, and ``not_selected`` those of
    items that were not selected for the import."""
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
                why = "was not selected" if key in not_selected else "does not exist"
                findings.append(_finding(f"{item.name} depends on {key.partition(':')[2]}, which {why}", item))
    result: list[ImportItem] = []
    for group in _groups(edges):
        members = set(group)
        if len(group) > 1:
            names = join_limited([by_key[key].name for key in group], _MAX_LISTED)
            message = f"{len(group)} items depend on each other in a cycle ({names})"
            findings.append(_finding(message, by_key[group[0]]))
        for key in group:
            dependencies = tuple(dependency for dependency in edges[key] if dependency not in members)
            result.append(by_key[key]._replace(depends_on=dependencies))
    return OrderedItems(tuple(result), tuple(findings))


def _finding(problem: str, item: ImportItem) -> ImportFinding:
    return ImportFinding(FindingCode.IMPORT_DEPENDENCY, f"{problem}; the dependency was skipped.", item.where)


def _groups(edges: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The strongly connected components of a graph, each after its successors (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for start in edges:
        if start in number:
            continue
        # An explicit stack: a chain of thousands would exceed Python's recursion limit.
        work: list[tuple[str, Iterator[str]]] = []
        entering: str | None = start
        while entering is not None or work:
            if entering is not None:
                number[entering] = lowest[entering] = len(number)
                stack.append(entering)
                on_stack.add(entering)
                work.append((entering, iter([key for key in edges[entering] if key in edges])))
                entering = None
            node, rest = work[-1]
            after = next(rest, None)
            if after is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
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
