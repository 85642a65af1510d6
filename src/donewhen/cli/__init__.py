"""The command line: one file a verb, and one place that turns what happened into an exit status."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``donewhen`` with these arguments and give back its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["hook"]:
        from donewhen.cli.hook import main as hook

        return hook(arguments[1:])
    from donewhen.cli._run import run

    return run(arguments)
