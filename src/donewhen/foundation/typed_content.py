"""Records whose content has one of several types."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def content_as(content: object, kind: type[T], record: str, number: int) -> T:
    """The content of a record, for a caller who knows its kind; raise TypeError if it is of another kind.

    ``record`` and ``number`` name the record in the message.
    """
    if not isinstance(content, kind):
        raise TypeError(f"{record} {number} is {type(content).__name__}, not {kind.__name__}.")
    return content
