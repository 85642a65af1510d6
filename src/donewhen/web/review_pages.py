"""What needs a person, one after the other: what is asked, what the judge saw and said, and what people said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.ledger import Actor
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.items import KINDS, ReviewItem
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
    """An item as it is shown."""

    item: ReviewItem
    kind: str
    evidence: Mapping[str, str]
    seen: str
    """The name of what is shown, so that a verdict is about that and nothing else."""


def queue_page(asked: PageRequest) -> PageContent:
    """The queue."""
    if asked.place.workspace is None:
        return PageContent("no_jobs.html", "Review", {"missions": asked.place.missions()}, room="review")
    found = review_queue(asked.place.jobs(), by=asked.session.by.name if asked.session else None)
    kind = asked.query.get("kind", "")
    chosen = [one for one in found if kind in ("", one.kind)]
    pages = max(1, -(-len(chosen) // _ON_A_PAGE))
    page = min(max(1, asked.number("page")), pages)
    values: dict[str, Any] = {
        "waiting": [waiting_item(one) for one in chosen[(page - 1) * _ON_A_PAGE : page * _ON_A_PAGE]],
        "total": len(found),
        "found": len(chosen),
        "counts": Counter(one.kind for one in found),
        "kinds": KINDS,
        "kind": kind,
        "page": page,
        "pages": pages,
    }
    return PageContent("review.html", "Review", values, room="review")


def item_page(asked: PageRequest) -> PageContent:
    """One item, with everything there is to know about it."""
    found = _item(asked.place.jobs(), asked.names["item"], asked.session.by if asked.session else None)
    pairs: tuple[PeoplePair, ...] = ()
    if found.mission is not None:
        with suppress(DonewhenError):
            pairs = people_agreement(read_mission_to_show(asked.place.mission(found.mission))).pairs
    return PageContent(
        "review_item.html", f"Review: {found.title}", {"one": waiting_item(found), "pairs": pairs}, room="review"
    )


def waiting_item(item: ReviewItem) -> WaitingItem:
    """An item, with evidence that fits on a page."""
    shown = {name: cut_middle(text, _HEAD, _TAIL)[0] for name, text in item.evidence.items()}
    return WaitingItem(item, KINDS[item.kind], shown, _seen(item))


def submit_verdict(workspace: Workspace, name: str, fields: Mapping[str, str], by: Actor) -> str:
    """Hand a person's verdict on, if what they saw is what is there; what became of it, in one sentence."""
    write_missing_labels(workspace)
    item = _item(workspace, name, by)
    verdict = _verdict(fields.get("verdict", ""))
    if verdict not in item.settles:
        raise UsageError(f"{verdict!r} is no answer to this.", next_step="Reload the page.")
    if fields.get("seen") != _seen(item):
        raise UsageError(
            "It was changed while you were looking at it, so nothing was recorded.", next_step="Look at it again."
        )
    reason = " ".join(fields.get("reason", "").split())[:_LONGEST_REASON]
    settled = record_verdict(workspace, item, verdict, Approval(by), reason)
    return settled.told


def _item(workspace: Workspace, name: str, by: Actor | None) -> ReviewItem:
    """An item by its whole id."""
    found = next((one for one in review_queue(workspace, by=by.name if by else None) if one.id == name), None)
    if found is None:
        raise PageNotFoundError(
            "This does not need a person any more, or is not there.", next_step="Look at the queue."
        )
    return found


def _verdict(word: str) -> Verdict:
    if word == "pass":
        return "pass"
    if word == "fail":
        return "fail"
    raise UsageError(f"{word!r} is no verdict.", next_step="A verdict is pass or fail.")


def _seen(item: ReviewItem) -> str:
    said = None if item.said is None else [item.said.verdict, item.said.passes, item.said.fails]
    return digest_of([item.id, item.kind, item.question, dict(item.evidence), said])
