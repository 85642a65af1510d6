"""The site is made of the same pages: their links lead to the same places, and its navigation is that of the index."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.docs_site import broken_links, navigation, rewritten, stage, staged_name

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("README.md", "[a](docs/faq.md#x)", "[a](faq.md#x)"),
        ("README.md", "![a](docs/images/demo.svg)", "![a](images/demo.svg)"),
        ("docs/howto/review.md", "[a](../index.md)", "[a](../all-pages.md)"),
        ("docs/howto/review.md", "[a](../../README.md)", "[a](../index.md)"),
        ("docs/howto/review.md", "[a](../../action.yml)", "[a](../files/action.yml)"),
        ("docs/howto/review.md", "[a](../../.pre-commit-hooks.yaml)", "[a](../files/pre-commit-hooks.yaml)"),
        ("docs/faq.md", "[a](#here) [b](https://127.0.0.1/)", "[a](#here) [b](https://127.0.0.1/)"),
        (
            "docs/faq.md",
            "`[a](b.md)`\n\n```python\nX[None](y=1)\n```\n",
            "`[a](b.md)`\n\n```python\nX[None](y=1)\n```\n",
        ),
        ("docs/faq.md", "```python file=a.py\nx\n```", '```python title="a.py"\nx\n```'),
        ("docs/faq.md", "```console needs=codex\n$ x\n```", "```console\n$ x\n```"),
    ],
)
def test_links_lead_to_the_same_place(page: str, text: str, expected: str) -> None:
    assert rewritten(page, text)[0] == expected


def test_every_page_is_in_the_navigation_once(tmp_path: Path) -> None:
    pages = stage(tmp_path)
    listed: list[str] = []
    for entry in navigation(pages):
        (value,) = entry.values()
        listed += [value] if isinstance(value, str) else [page for item in value for page in item.values()]
    assert sorted(listed) == sorted(pages)
    assert all((tmp_path / page).is_file() for page in pages)
    assert staged_name("README.md") in listed


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">x</a><a href="b.html#not">x</a><a href="c.html">x</a><a href="https://host/">x</a>'
        '<script src="https://host/x.js"></script><a href="mailto:x@y">x</a>'
    )
    assert sorted(broken_links(tmp_path)) == [
        "a.html: b.html#not (no such heading)",
        "a.html: c.html",
        "a.html: loads https://host/x.js",
    ]
