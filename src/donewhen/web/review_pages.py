"""The review pages: the queue, one item, and submitting a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import KINDS, VERDICTS, ReviewItem
from donewhen.review.people_agreement import PeoplePair, people_agreement
from donewhen.review.queue import review_queue
from donewhen.review.verdicts import Verdict, record_verdict, write_missing_labels
from donewhen.web.evidence import cut_middle
from donewhen.web.mission_pages import read_mission_to_show
from donewhen.web.page_request import PageRequest
from donewhen.web.project_folder import PageNotFoundError
from donewhen.web.rendering import PageContent

_ON_A_PAGE = 30
_LONGEST_REASON = 2000
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
        "answers": tuple(dict.fromkeys(answer for item in shown for answer in item.answers)) or VERDICTS,
        "total": len(items),
        "found": len(chosen),
        "counts": Counter(item.kind for item in items),
        "kinds": KINDS,
        "kind": kind,
        "page": page,
        "pages": pages,
    }
    return PageContent("review.html", "Review", values, room="review")


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
    """Record a person's verdict if the item is unchanged since it was displayed; return a one-sentence result."""
    write_missing_labels(workspace)
    try:
        item = _item(workspace, name, by)
    except PageNotFoundError as error:
        raise PageNotFoundError(
            "This item no longer needs a review, or it changed after the page was loaded. The answer was not recorded.",
            next_step="Go back to the queue and review it again.",
        ) from error
    verdict = _verdict(fields.get("verdict", ""))
    if verdict not in item.settles:
        raise UsageError(f"{verdict!r} is not a possible verdict for this item.", next_step="Reload the page.")
    if fields.get("seen") != _content_hash(item):
        raise UsageError(
            "The item changed after the page was loaded, so nothing was recorded.",
            next_step="Reload the page and review it again.",
        )
    reason = " ".join(fields.get("reason", "").split())[:_LONGEST_REASON]
    settled = record_verdict(workspace, item, verdict, Approval(by), reason)
    return settled.told


def _item(workspace: Workspace, name: str, by: Actor | None) -> ReviewItem:
    """Return the item with this full id."""
    match = next((item for item in review_queue(workspace, by=by.name if by else None) if item.id == name), None)
    if match is None:
        raise PageNotFoundError(
            "This item no longer needs a review, or does not exist.", next_step="Go back to the queue."
        )
    return match


def _verdict(word: str) -> Verdict:
    if word == "pass":
        return "pass"
    if word == "fail":
        return "fail"
    raise UsageError(f"{word!r} is not a verdict.", next_step="A verdict is pass or fail.")


def _content_hash(item: ReviewItem) -> str:
    statement = None if item.said is None else [item.said.verdict, item.said.passes, item.said.fails]
    return digest_of([item.id, item.kind, item.question, dict(item.evidence), statement])
