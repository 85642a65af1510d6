"""The review pages: the queue, one item, and submitting a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.ledger.approval import Approval, approval_in_person
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.answering import LONGEST_ANSWER
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import KINDS, VERDICTS, ReviewItem
from donewhen.review.people_agreement import PeoplePair, people_agreement
from donewhen.review.queue import review_queue
from donewhen.review.verdicts import record_verdict, write_missing_labels
from donewhen.web.evidence import cut_middle
from donewhen.web.mission_pages import read_mission_to_show
from donewhen.web.page_request import PageRequest
from donewhen.web.project_folder import PageNotFoundError
from donewhen.web.rendering import PageContent

_ON_A_PAGE = 30
_HEAD, _TAIL = 12_000, 8_000


class WaitingItem(NamedTuple):
    """A review item for display."""

    item: ReviewItem
    kind: str
    evidence: Mapping[str, str]
    seen: str
    """The hash of the displayed content, so that a verdict applies only to it."""


def queue_page(request: PageRequest) -> PageContent:
    """Return the review queue."""
    if request.place.workspace is None:
        return PageContent("no_jobs.html", "Review", {"missions": request.place.missions()}, room="review")
    items = review_queue(request.place.jobs(), by=request.session.by.name if request.session else None)
    kind = request.query.get("kind", "")
    chosen = [item for item in items if kind in ("", item.kind)]
    pages = max(1, -(-len(chosen) // _ON_A_PAGE))
    page = min(max(1, request.number("page")), pages)
    shown = chosen[(page - 1) * _ON_A_PAGE : page * _ON_A_PAGE]
    values: dict[str, Any] = {
        "waiting": [waiting_item(item) for item in shown],
        "answers": _keys(shown),
        "total": len(items),
        "found": len(chosen),
        "counts": Counter(item.kind for item in items),
        "kinds": KINDS,
        "kind": kind,
        "page": page,
        "pages": pages,
    }
    return PageContent("review.html", "Review", values, room="review")


def _keys(items: Sequence[ReviewItem]) -> dict[str, str]:
    """The keys of the answers to these items, with what they do."""
    words: dict[str, dict[str, None]] = {}
    for answer in [answer for item in items for answer in item.answers] or VERDICTS:
        words.setdefault(answer.key, {})[answer.word.replace("-", " ")] = None
    return {key: " or ".join(meanings) for key, meanings in words.items()}


def item_page(request: PageRequest) -> PageContent:
    """Return the page of one review item."""
    item = _item(request.place.jobs(), request.names["item"], request.session.by if request.session else None)
    pairs: tuple[PeoplePair, ...] = ()
    if item.mission is not None:
        with suppress(DonewhenError):
            pairs = people_agreement(read_mission_to_show(request.place.mission(item.mission))).pairs
    return PageContent(
        "review_item.html", f"Review: {item.title}", {"waiting": waiting_item(item), "pairs": pairs}, room="review"
    )


def waiting_item(item: ReviewItem) -> WaitingItem:
    """Return an item with its evidence shortened for the page."""
    evidence = {name: cut_middle(text, _HEAD, _TAIL)[0] for name, text in item.evidence.items()}
    return WaitingItem(item, KINDS[item.kind], evidence, _content_hash(item))


def submit_verdict(workspace: Workspace, name: str, fields: Mapping[str, str], by: Actor) -> str:
    """Record a person's answer if the item is unchanged since it was displayed; return a one-sentence result.

    If it can't be recorded, the error repeats what the person wrote, so that it is not lost with the page.
    """
    write_missing_labels(workspace)
    words = " ".join(fields.get("reason", "").split())
    yours = f" You wrote: {words}" if words else ""
    try:
        item = _item(workspace, name, by)
    except PageNotFoundError as error:
        raise PageNotFoundError(
            "This item no longer needs a review, or it changed after the page was loaded. The answer was not recorded."
            + yours,
            next_step="Go back to the queue and review it again.",
        ) from error
    word = fields.get("verdict", "")
    answer = next((answer for answer in item.answers if answer.verdict == word), None)
    if answer is None:
        raise UsageError(f"{word!r} is not a possible answer to this item.{yours}", next_step="Reload the page.")
    if answer.needs_words and not words:
        raise UsageError("The answer is empty, so nothing was recorded.", next_step="Go back and write one.")
    if len(words) > LONGEST_ANSWER:
        raise UsageError(
            f"This is longer than {LONGEST_ANSWER} characters, so nothing was recorded.{yours}",
            next_step="Write what is longer into a file, and name the file.",
        )
    if fields.get("seen") != _content_hash(item):
        raise UsageError(
            f"The item changed after the page was loaded, so nothing was recorded.{yours}",
            next_step="Reload the page and review it again.",
        )
    try:
        return record_verdict(workspace, item, answer.verdict, _approval(workspace, by), words).told
    except UsageError as error:
        raise UsageError(f"{error.message}{yours}", where=error.where, next_step=error.next_step) from error


def _approval(workspace: Workspace, by: Actor) -> Approval:
    """A reviewer's approval; for the account that runs the server with the name that git has for it."""
    own = approval_in_person(workspace.root)
    return own if own.by == by else Approval(by)


def _item(workspace: Workspace, name: str, by: Actor | None) -> ReviewItem:
    """Return the item with this full id."""
    match = next((item for item in review_queue(workspace, by=by.name if by else None) if item.id == name), None)
    if match is None:
        raise PageNotFoundError(
            "This item no longer needs a review, or does not exist.", next_step="Go back to the queue."
        )
    return match


def _content_hash(item: ReviewItem) -> str:
    statement = None if item.said is None else [item.said.verdict, item.said.passes, item.said.fails]
    return digest_of([item.id, item.kind, item.question, dict(item.evidence), statement])
