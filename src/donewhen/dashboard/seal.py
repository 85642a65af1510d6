"""Whether the dashboard's page is the one that donewhen wrote from given data, decided without rendering it.

The script, the style, the policy and all other fixed parts of the page have to be those of this version, and the data
has to be exactly the given one. What else depends on the data is a list for readers without scripts: it may hold only
text and the tags of that list, and a hash at the end of the page shows when somebody has edited it.
"""

from __future__ import annotations

import hashlib
import re

from donewhen.dashboard.skeleton import file_skeleton

_MARK = b"<!-- sha256:"
_END = b" -->\n"
_PLAIN = re.compile(rb"(?:[^<]+|</?(?:tr|td|p)>)*")
_LAST: list[tuple[bytes, bytes, bool]] = []
"""The last page and data that were compared, with the answer."""


def seal_page(page: bytes) -> bytes:
    """Append the hash of a page to it, as a comment."""
    return page + _MARK + _digest(page) + _END


def page_matches(page: bytes, data: bytes) -> bool:
    """Whether a page was made from exactly this data, and has not been edited since. The last answer is kept, because
    one command asks several times."""
    for seen_page, seen_data, matched in _LAST:
        if (seen_page, seen_data) == (page, data):
            return matched
    content, mark, rest = page.rpartition(_MARK)
    matches = bool(mark) and rest == _digest(content) + _END and _fits(content, data)
    _LAST[:] = [(page, data, matches)]
    return matches


def is_as_written(page: bytes, data: bytes) -> bool:
    """Whether donewhen, of this version or another, wrote this page from this data, and nobody has edited either."""
    content, mark, rest = page.rpartition(_MARK)
    return bool(mark and data) and rest == _digest(content) + _END and data in content


def is_foreign(page: bytes) -> bool:
    """Whether another tool wrote the page."""
    return _MARK not in page


def _fits(content: bytes, data: bytes) -> bool:
    """Whether the fixed parts are those of this version, and the slots between them hold what they may hold."""
    skeleton = file_skeleton()
    if not content.startswith(skeleton.start):
        return False
    at = len(skeleton.start)
    for slot, fixed in skeleton.slots:
        end = at + len(data) if slot == "data" else max(at, content.find(fixed, at))
        held = content[at:end]
        if held != data if slot == "data" else _PLAIN.fullmatch(held) is None:
            return False
        if not content.startswith(fixed, end):
            return False
        at = end + len(fixed)
    return at == len(content)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
