"""The section of `donewhen doctor` about what an agent on this machine could imitate."""

from __future__ import annotations

from pathlib import Path

from donewhen.cli._output import Output
from donewhen.config import find_root, load
from donewhen.config.settings import ApprovalSettings
from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.ledger.imitation import Imitation, imitations


def show_imitations(output: Output, folder: Path) -> list[dict[str, str]]:
    """Print the section, and return it for ``--json``."""
    found = _imitations(folder)
    if found:
        output.say()
        output.say("What an agent on this machine could imitate:", bold=True)
    for imitation in found:
        output.say(f"· {imitation.name}: {imitation.detail}")
        output.say(f"  next: {imitation.next}", dim=True)
    return [imitation._asdict() for imitation in found]


def _imitations(folder: Path) -> tuple[Imitation, ...]:
    try:
        approval = load(folder).approval
    except DonewhenError:
        # Settings that can't be read are reported elsewhere.
        approval = ApprovalSettings()
    return imitations(approval, find_root(folder))
