"""Promises: the text printed when a job is done, with a receipt that can be verified against the ledger."""

from __future__ import annotations

import re
from typing import NamedTuple

from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Chain, Entry
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

_PROMISE = re.compile(r"<promise>((?:PJ|WS|WI)-\d{8}-\d{3,})-DONE</promise>")
_RECEIPT = re.compile(r"receipt: (sha256:[0-9a-f]{64})")
_PAST = "it was completed, but the completion is no longer valid"


class Promise(NamedTuple):
    """The id and receipt that are printed when something is done."""

    id: str
    receipt: str

    @property
    def text(self) -> str:
        return f"<promise>{self.id}-DONE</promise>\nreceipt: {self.receipt}"


class PromiseCheck(NamedTuple):
    """Whether a text contains a real promise, and why (not)."""

    id: str | None
    real: bool
    why: str


class InvalidCompletion(NamedTuple):
    """Why a completion is missing or not valid."""

    code: FindingCode
    why: str


def promise_of(chain: str, entry: Entry) -> Promise:
    """Return the promise for a completion entry."""
    return Promise(chain, entry.hash)


def verify_promise(workspace: Workspace, text: str, policy: Policy) -> PromiseCheck:
    """Check the promise in a text: its receipt must be a completion in the ledger that is still valid."""
    promise = _PROMISE.search(text)
    if promise is None:
        return PromiseCheck(None, False, "the text contains no promise")
    name = promise[1]
    receipt = _RECEIPT.search(text, promise.end())
    if receipt is None:
        return PromiseCheck(name, False, "it has no receipt, so anybody could have typed it")
    chain = workspace.ledger.read(name)
    entry = next((entry for entry in chain.entries if entry.hash == receipt[1]), None)
    if chain.whole and (entry is None or entry.type != "completed"):
        return PromiseCheck(name, False, "the ledger has no completion with this receipt")
    completion = current_completion(workspace, name, chain, policy)
    if isinstance(completion, InvalidCompletion):
        return PromiseCheck(name, False, completion.why)
    if completion.hash != receipt[1]:
        return PromiseCheck(name, False, _PAST)
    return PromiseCheck(name, True, "the ledger has this completion")


def current_completion(workspace: Workspace, name: str, chain: Chain, policy: Policy) -> Entry | InvalidCompletion:
    """Return the completion of this chain if the chain is intact and the completion still valid, else why not."""
    if not chain.whole:
        problem = next(failure for failure in chain.breaks if not failure.torn)
        if problem.other_version:
            return InvalidCompletion(FindingCode.OTHER_VERSION, problem.problem)
        return InvalidCompletion(FindingCode.CHAIN_BROKEN, "the ledger is broken")
    completion = history_of(name, chain.entries, policy).completed
    if completion is None:
        once = any(entry.type == "completed" for entry in chain.entries)
        return InvalidCompletion(FindingCode.NOT_DONE, _PAST if once else "it was never completed")
    if name.startswith("WI-") and ValidityChecker(workspace, policy).of(name).state != "done":
        return InvalidCompletion(FindingCode.DONE_INVALID, "something that it depends on has changed since")
    return completion
