"""The seal of the dashboard's page: whether a page is unchanged since it was written, and made from given data.

Nothing is rendered to find out, so whoever decides about a job needs no part of the page.
"""

from __future__ import annotations

import hashlib

DATA_START = b'<script type="application/json" id="data">'
DATA_END = b"</script>"
_MARK = b"<!-- sha256:"
_END = b" -->\n"


def seal_page(page: bytes) -> bytes:
    """Append the hash of a page to it, as a comment."""
    return page + _MARK + _digest(page) + _END


def page_matches(page: bytes, data: bytes) -> bool:
    """Whether a page contains exactly this data and has not been edited since it was written."""
    content, mark, rest = page.rpartition(_MARK)
    return bool(mark) and rest == _digest(content) + _END and DATA_START + data + DATA_END in content


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
