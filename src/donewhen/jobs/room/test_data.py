"""Data that belongs to tests or to scripts of checks: agreed ones name it, and nothing else does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from donewhen.jobs.room.room_plan import RoomPlan
from donewhen.jobs.room.script_mentions import may_be_compared
from donewhen.jobs.room.work_area import JudgingFiles, WorkArea

_CODE = re.compile(
    r"\.(?:py|pyi|js|jsx|cjs|mjs|ts|tsx|vue|go|rs|java|kt|rb|php|cs|swift|scala|c|cc|cpp|h|sh|lua|ex|exs)\Z"
)
_LARGEST = 1 << 20
_SHORTEST = 5
# Tests read all files of such a folder, and name only the folder.
_FOLDER = re.compile(
    r"(?i)(?:test|spec|regression|acceptance)?[-_]?(?:cases|fixtures?|snapshots?|approvals|baselines?|references?"
    r"|samples|scenarios|vectors|goldens?|expect(?:ed|ations)|examples)\Z"
)
_FOLDER_IN_DOCUMENTATION = re.compile(
    r"(?i)(?:test|regression|acceptance)?[-_]?(?:cases|fixtures?|snapshots?|baselines?|vectors|goldens?|expected)\Z"
)
"""Samples and references are documentation."""
_DOCUMENTATION = frozenset({"doc", "docs", "documentation"})
_PROSE = (".md", ".mdx", ".rst", ".adoc")


def data_of_tests(
    plan: RoomPlan,
    judges: JudgingFiles,
    area: WorkArea,
    agreed: Collection[str],
    read: Callable[[Iterable[str]], Iterator[bytes]],
) -> frozenset[str]:
    """The changed files in the work area that are data of agreed tests, or of scripts that check the work; ``read``
    returns agreed files' contents.

    Who may change what a test expects decides what it says. Product data is named by the product, too, and is work. No
    file is read where no data has changed, which is nearly always.
    """
    changed = (
        change.name
        for change in plan.changes
        if change.kind == "work" and change.how != "added" and _is_data(change.name) and not area.is_output(change.name)
    )
    found = {name: mention for name in changed if (mention := _mentions(name)) is not None}
    if not found:
        return frozenset()
    code = [name for name in agreed if _CODE.search(name)]
    named = _named_in(found, [name for name in code if judges.is_test(name)], read)
    compared = {
        name: mention
        for name, mention in found.items()
        if name not in named and may_be_compared(name, area.inside, agreed)
    }
    named |= _named_in(compared, [name for name in judges.scripts if name in agreed], read)
    if not named:
        return frozenset()
    # The product may name only the folder of its data, and put names together.
    with_code = {name.rpartition("/")[0] for name in code}
    wider = {name: _with_folder(name, mention, with_code) for name, mention in named.items()}
    others = _named_in(wider, [name for name in code if not judges.is_test(name) and name not in judges.scripts], read)
    return frozenset(named.keys() - others.keys())


def _is_data(name: str) -> bool:
    *folders, last = name.split("/")
    # Tests may look at pages; who works on the documentation writes them.
    is_page = last.endswith(_PROSE) and (not folders or not _DOCUMENTATION.isdisjoint(folders))
    return _CODE.search(name) is None and "." in last and not is_page


def _mentions(name: str) -> re.Pattern[bytes] | None:
    """How code mentions a file: by its own name, or by the folder of data that it lies in."""
    *folders, last = name.split("/")
    words = [re.escape(last.encode())] if len(last) >= _SHORTEST else []
    form = _FOLDER_IN_DOCUMENTATION if _DOCUMENTATION.intersection(folders) else _FOLDER
    words += [b"[\"'/]%s[\"'/]" % re.escape(folder.encode()) for folder in folders if form.match(folder)]
    return re.compile(b"|".join(words)) if words else None


def _with_folder(name: str, mention: re.Pattern[bytes], with_code: Collection[str]) -> re.Pattern[bytes]:
    folder = name.rpartition("/")[0]
    if not folder or folder in with_code:
        return mention
    return re.compile(mention.pattern + b"|[\"'/]%s[\"'/]" % re.escape(folder.rpartition("/")[2].encode()))


def _named_in(
    wanted: Mapping[str, re.Pattern[bytes]],
    files: Collection[str],
    read: Callable[[Iterable[str]], Iterator[bytes]],
) -> dict[str, re.Pattern[bytes]]:
    left = dict(wanted)
    found: dict[str, re.Pattern[bytes]] = {}
    for content in read(files):
        if len(content) <= _LARGEST:
            found |= {name: left.pop(name) for name, mention in [*left.items()] if mention.search(content)}
        if not left:
            break
    return found
