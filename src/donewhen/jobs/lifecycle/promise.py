"""The promise: minted once, by the one function that completes, with a receipt that can be checked."""

from __future__ import annotations

import re
from typing import NamedTuple

from donewhen.jobs.board.validity import ValidityChecker
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.ledger import Chain, Entry
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

_PROMISE = re.compile(r"<promise>((?:PJ|WS|WI)-\d{8}-\d{3,})-DONE</promise>")
_RECEIPT = re.compile(r"receipt: (sha256:[0-9a-f]{64})")
_PAST = "it was completed then, but does not stand any more"


class Promise(NamedTuple):
    """What is printed when something is done."""

    id: str
    receipt: str

    @property
    def text(self) -> str:
        return f"<promise>{self.id}-DONE</promise>\nreceipt: {self.receipt}"


class PromiseCheck(NamedTuple):
    """Whether a text holds a real promise."""

    id: str | None
    real: bool
    why: str


class InvalidCompletion(NamedTuple):
    """Why a completion does not stand."""

    code: FindingCode
    why: str


def promise_of(chain: str, entry: Entry) -> Promise:
    """The promise for a completion on record."""
    return Promise(chain, entry.hash)


def verify_promise(workspace: Workspace, text: str, policy: Policy) -> PromiseCheck:
    """Tell a real promise from a typed one: its receipt is a completion in the ledger, and that still stands."""
    found = _PROMISE.search(text)
    if found is None:
        return PromiseCheck(None, False, "there is no promise in it")
    receipt = _RECEIPT.search(text, found.end())
    if receipt is None:
        return PromiseCheck(found[1], False, "it has no receipt, so anybody may have typed it")
    chain = workspace.ledger.read(found[1])
    entry = next((one for one in chain.entries if one.hash == receipt[1]), None)
    if chain.whole and (entry is None or entry.type != "completed"):
        return PromiseCheck(found[1], False, "the ledger knows no completion with this receipt")
    status = standing_completion(workspace, found[1], chain, policy)
    if isinstance(status, InvalidCompletion):
        return PromiseCheck(found[1], False, status.why)
    if status.hash != receipt[1]:
        return PromiseCheck(found[1], False, _PAST)
    return PromiseCheck(found[1], True, "the ledger has it")


def standing_completion(workspace: Workspace, name: str, chain: Chain, policy: Policy) -> Entry | InvalidCompletion:
    """The completion of this chain, if it stands now: nothing was broken, taken back, or built on what has changed."""
    if not chain.whole:
        return InvalidCompletion(FindingCode.CHAIN_BROKEN, "the ledger does not hold together")
    status = history_of(name, chain.entries, policy).completed
    if status is None:
        once = any(entry.type == "completed" for entry in chain.entries)
        return InvalidCompletion(FindingCode.NOT_DONE, _PAST if once else "it was never completed")
    if name.startswith("WI-") and ValidityChecker(workspace, policy).of(name).state != "done":
        return InvalidCompletion(FindingCode.DONE_INVALID, "it was done on something that has changed since")
    return status
