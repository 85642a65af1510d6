"""The drawing of what waits for what."""

from __future__ import annotations

from pathlib import Path

from donewhen.jobs.board.survey import JobRecord
from donewhen.web.graph_page import MOST, TALL, WIDE, drawing, layers


def job(name: str, *before: str, status: str = "planned") -> JobRecord:
    return JobRecord(name, name, status, "normal", before, 0, 3, 1.0, "agreed", (), Path(name), 0)


def test_everything_stands_to_the_right_of_what_it_waits_for() -> None:
    assert layers({"a": [], "b": ["a"], "c": ["a", "b"], "d": []}) == {"a": 0, "b": 1, "c": 2, "d": 0}


def test_a_circle_is_drawn_and_ends() -> None:
    found = layers({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})
    assert set(found) == {"a", "b", "c", "d"}
    drawn = drawing([job("a", "b"), job("b", "c"), job("c", "a")])
    assert [arrow.back for arrow in drawn.arrows].count(True) == 1
    assert len(drawn.arrows) == 3


def test_a_long_chain_takes_no_recursion() -> None:
    above = {f"j{n}": [f"j{n + 1}"] for n in range(5000)} | {"j5000": []}
    assert layers(above)["j0"] == 5000


def test_no_two_jobs_overlap_and_all_are_inside() -> None:
    jobs = [job("root")] + [job(f"a{n}", "root") for n in range(7)] + [job("end", *(f"a{n}" for n in range(7)))]
    drawn = drawing(jobs)
    places = {(node.x, node.y) for node in drawn.nodes}
    assert len(places) == len(jobs)
    for node in drawn.nodes:
        assert 0 <= node.x <= drawn.width - WIDE
        assert 0 <= node.y <= drawn.height - TALL
    by_column: dict[int, list[int]] = {}
    for node in drawn.nodes:
        by_column.setdefault(node.x, []).append(node.y)
    for tops in by_column.values():
        assert all(below - above >= TALL for above, below in zip(sorted(tops), sorted(tops)[1:], strict=False))


def test_what_waits_for_something_that_does_not_exist_is_drawn_without_an_arrow() -> None:
    drawn = drawing([job("a", "gone"), job("b", "a")])
    assert [(arrow.start, arrow.end) for arrow in drawn.arrows] == [("a", "b")]


def test_lines_that_cross_are_untangled() -> None:
    drawn = drawing([job("a"), job("b"), job("x", "b"), job("y", "a")])
    place = {node.job.id: node.y for node in drawn.nodes}
    assert (place["a"] < place["b"]) == (place["y"] < place["x"])


def test_nothing_draws_nothing() -> None:
    assert drawing([]).nodes == ()
    assert MOST == 200
