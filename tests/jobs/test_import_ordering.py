"""What comes after what: everything after what it depends on, circles and unknown names told and left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from donewhen.jobs.imports.items import ImportItem
from donewhen.jobs.imports.ordering import order_items
from donewhen.jobs.ledger.finding_codes import FindingCode
from sentences import assert_sentences


def items(**after: str) -> list[ImportItem]:
    return [
        ImportItem(f"backlog:{name}", name, f"{name}.md", depends_on=tuple(f"backlog:{part}" for part in names.split()))
        for name, names in after.items()
    ]


def names(found: tuple[ImportItem, ...]) -> list[str]:
    return [item.name for item in found]


def test_items_stand_after_what_they_depend_on_and_else_in_their_order() -> None:
    order = order_items(items(a="c", b="", c="d", d=""))
    assert names(order.items) == ["d", "c", "a", "b"]
    assert not order.findings


def test_parts_count_as_dependencies() -> None:
    whole, part = items(a="", b="")
    order = order_items([whole._replace(parts=(part.key,)), part])
    assert names(order.items) == ["b", "a"]
    assert order.items[1].depends_on == ("backlog:b",)


def test_an_unknown_name_is_told_and_dropped_unless_it_is_a_job_already() -> None:
    order = order_items(items(a="b x"), {"backlog:x"})
    assert order.items[0].depends_on == ("backlog:x",)
    assert [(finding.code, finding.where) for finding in order.findings] == [(FindingCode.IMPORT_DEPENDENCY, "a.md")]
    assert "a depends on b, which does not exist" in order.findings[0].message


def test_an_item_that_depends_on_itself_does_not() -> None:
    order = order_items(items(a="a"))
    assert order.items[0].depends_on == ()
    assert_sentences(order.findings[0].message)


def test_a_circle_is_told_once_and_what_leads_out_of_it_stays() -> None:
    order = order_items(items(a="b", b="c", c="a d", d="", e="a"))
    after = {item.name: [key.partition(":")[2] for key in item.depends_on] for item in order.items}
    assert after == {"d": [], "a": [], "b": [], "c": ["d"], "e": ["a"]}
    assert len(order.findings) == 1
    assert_sentences(order.findings[0].message)


def test_a_chain_of_thousands_is_no_problem() -> None:
    chain = items(**{f"n{number}": f"n{number + 1}" if number < 19_999 else "" for number in range(20_000)})
    order = order_items(chain)
    assert order.items[0].name == "n19999"
    assert order.items[-1].name == "n0"


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefghx"), max_size=4), max_size=8))
def test_nothing_stands_before_what_it_depends_on_and_nothing_is_lost(graph: dict[str, list[str]]) -> None:
    order = order_items(items(**{name: " ".join(after) for name, after in graph.items()}))
    assert sorted(names(order.items)) == sorted(graph)
    before: set[str] = set()
    for item in order.items:
        assert set(item.depends_on) <= before
        before.add(item.key)
    wanted = sum(len(set(after)) for after in graph.values())
    kept = sum(len(item.depends_on) for item in order.items)
    assert (kept == wanted) == (not order.findings)
