"""The dependency graph: jobs in layers from left to right, so that every arrow points forwards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.board.survey import JobRecord
from donewhen.web.page_request import PageRequest
from donewhen.web.rendering import PageContent

MOST = 200
WIDE, TALL, GAP_X, GAP_Y, EDGE = 190, 46, 70, 18, 12
_SWEEPS = 6


class Node(NamedTuple):
    """A job in the drawing."""

    job: JobRecord
    x: int
    y: int


class Arrow(NamedTuple):
    """An arrow from a dependency to the job that depends on it; ``back`` if it is part of a cycle."""

    start: str
    end: str
    path: str
    back: bool


class Drawing(NamedTuple):
    """The whole graph, with its size."""

    nodes: tuple[Node, ...]
    arrows: tuple[Arrow, ...]
    width: int
    height: int


def graph_page(request: PageRequest) -> PageContent:
    """Return the graph, and the same as a list."""
    if request.place.workspace is None:
        return PageContent("no_jobs.html", "Graph", {"missions": request.place.missions()}, room="graph")
    jobs = request.survey().jobs
    named = {name for job in jobs for name in job.depends_on}
    linked = [job for job in jobs if job.depends_on or job.id in named]
    alone = [job for job in jobs if not job.depends_on and job.id not in named]
    chosen = _chosen(linked)
    known = {job.id for job in jobs}
    values = {
        "drawing": drawing(chosen),
        "shown": len(chosen),
        "linked": linked[: 5 * MOST],
        "linked_count": len(linked),
        "alone": alone[:MOST],
        "alone_count": len(alone),
        "known": known,
        "wide": WIDE,
        "tall": TALL,
        "most": MOST,
    }
    return PageContent("graph.html", "Graph", values, room="graph")


def _chosen(jobs: Sequence[JobRecord]) -> list[JobRecord]:
    """Return at most MOST jobs: open jobs before finished ones, otherwise in their order."""
    if len(jobs) <= MOST:
        return list(jobs)
    picked = {job.id for job in sorted(jobs, key=lambda job: job.status in ("done", "cancelled"))[:MOST]}
    return [job for job in jobs if job.id in picked]


def drawing(jobs: Sequence[JobRecord]) -> Drawing:
    """Put jobs into layers, order each so that arrows cross little, and draw."""
    by_id = {job.id: job for job in jobs}
    above = {job.id: [name for name in dict.fromkeys(job.depends_on) if name in by_id] for job in jobs}
    layer = layers(above)
    rows: dict[int, list[str]] = defaultdict(list)
    for name in by_id:
        rows[layer[name]].append(name)
    _untangle(rows, above)
    tallest = max((len(row) for row in rows.values()), default=0)
    height = tallest * (TALL + GAP_Y) - GAP_Y + 2 * EDGE if tallest else 0
    nodes: dict[str, Node] = {}
    for number, names in sorted(rows.items()):
        inset = (height - len(names) * (TALL + GAP_Y) + GAP_Y) // 2
        for place, name in enumerate(names):
            nodes[name] = Node(by_id[name], EDGE + number * (WIDE + GAP_X), inset + place * (TALL + GAP_Y))
    arrows = tuple(
        _arrow(nodes[before], nodes[name], back=layer[before] >= layer[name])
        for name, names in above.items()
        for before in names
    )
    width = len(rows) * (WIDE + GAP_X) - GAP_X + 2 * EDGE if rows else 0
    return Drawing(tuple(nodes.values()), arrows, width, height)


def layers(above: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the layer of each job: one more than its highest dependency; a cycle is broken at the first job met."""
    layer_of: dict[str, int] = {}
    for first in above:
        stack, path = [first], set()
        while stack:
            name = stack[-1]
            if name in layer_of:
                stack.pop()
                continue
            path.add(name)
            waiting = [
                dependency for dependency in above[name] if dependency not in layer_of and dependency not in path
            ]
            if waiting:
                stack += waiting
                continue
            layer_of[name] = 1 + max(
                (layer_of[dependency] for dependency in above[name] if dependency in layer_of), default=-1
            )
            path.discard(name)
            stack.pop()
    return layer_of


def _untangle(rows: Mapping[int, list[str]], above: Mapping[str, Sequence[str]]) -> None:
    """Reorder each layer by the mean position of its neighbours, in a few sweeps, to reduce crossings."""
    below: dict[str, list[str]] = defaultdict(list)
    for name, names in above.items():
        for dependency in names:
            below[dependency].append(name)
    for sweep in range(_SWEEPS):
        forwards = sweep % 2 == 0
        place = {name: at / max(1, len(names)) for names in rows.values() for at, name in enumerate(names)}
        for number in sorted(rows, reverse=not forwards):
            near = above if forwards else below
            rows[number].sort(
                key=lambda name: _middle([place[neighbour] for neighbour in near.get(name, ())], place[name])
            )
            place |= {name: at / max(1, len(rows[number])) for at, name in enumerate(rows[number])}


def _middle(places: Sequence[float], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise


def _arrow(before: Node, after: Node, *, back: bool) -> Arrow:
    x1, y1 = before.x + WIDE, before.y + TALL // 2
    x2, y2 = after.x - 7, after.y + TALL // 2
    bend = max(30, abs(x2 - x1) // 2) if not back else 60
    path = f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    return Arrow(before.job.id, after.job.id, path, back)
