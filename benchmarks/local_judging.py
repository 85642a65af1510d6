"""The speed of the local model as a judge, with and without reuse of the shared part of the prompt.

Both are measured in one run with the same questions. Without reuse, each prompt begins with a different number, so
that the text after it, although it is the same, must be evaluated again.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import NamedTuple

from donewhen.models.local.local_model import LocalModel
from donewhen.models.registry import open_model
from donewhen.models.roles import Decode, Prompt, RolloutRequest, Usage

TICKETS = 12
_RULES = [
    f"[G{number}] If the report leaves out {what}, the verdict is fail; a report that names it is not refused for that."
    for number, what in enumerate(
        [
            "the command that ran the tests", "the number of tests that were run", "which tests were skipped, and why",
            "the version of the program that was tested", "what the change does for its users",
            "how the change can be taken back", "who looked at the change", "the errors that were seen on the way",
            "the files that were changed", "what was left undone", "how long the tests took",
            "on which machine the tests were run", "what the measured figures were before the change",
            "a link to the discussion that led to it", "the date on which it was done",
            "the warnings that the compiler gave", "what users have to do when they upgrade",
            "the tests that were added", "why the simplest way was not taken",
        ],
        1,
    )
]  # fmt: skip
SHARED = (
    "You judge whether the report of a change is acceptable: pass or fail. There is no third verdict.\n"
    + "\n".join(_RULES)
    + "\nAnswer with exactly two lines and nothing else:\nVerdict: pass or fail\nReason: one sentence\n"
)


class Way(NamedTuple):
    """The measurements of several judgements."""

    seconds: list[float]
    used: list[Usage]


def local_judging(choice: str = "local") -> int:
    """Judge the same tickets with and without reuse, and print the ratio."""
    model = open_model(choice)
    assert isinstance(model, LocalModel)
    print(f"{model.name}: one prompt evaluation per ticket, verdict by log-probability, no reason")
    began = time.monotonic()
    asyncio.run(_judged(model, "", 1, "warming up"))
    print(f"  loaded, and the shared part evaluated, in {time.monotonic() - began:.1f} s")
    warm = asyncio.run(_judged(model, "", TICKETS, "again"))
    cold = asyncio.run(_judged(model, "{}. ", TICKETS, "apart"))
    print(f"  {'':24} {'s/ticket':>11} {'tickets/min':>12} {'tokens read':>12} {'of prompt':>10}")
    _row("with prefix reuse", warm)
    _row("without", cold)
    ratio = statistics.mean(cold.seconds) / statistics.mean(warm.seconds)
    shared = warm.used[0].cached_tokens
    print(f"  ratio {ratio:.1f} (target: 5), with {shared} shared tokens (target: 600)")
    return 0 if shared >= 600 else 1


async def _judged(model: LocalModel, head: str, count: int, name: str) -> Way:
    measured = Way([], [])
    for number in range(count):
        text = (
            f"Report {name} {number}: the cache was rewritten. All {120 + number} tests were run with `make test` "
            f"in {number + 3} minutes; none was skipped. The figures are in the table below."
        )
        prompt = Prompt(head.format(number) + SHARED, f"<evidence>\n{text}\n</evidence>\n")
        request = RolloutRequest(prompt, {}, {"text": text}, Decode(0.0, 0), "en", reason=False)
        began = time.monotonic()
        completion = await model.roll(request)
        measured.seconds.append(time.monotonic() - began)
        measured.used.append(completion.usage)
    return measured


def _row(name: str, way: Way) -> None:
    seconds = statistics.mean(way.seconds)
    read = statistics.mean(usage.prompt_tokens - usage.cached_tokens for usage in way.used)
    whole = statistics.mean(usage.prompt_tokens for usage in way.used)
    print(f"  {name:24} {seconds:11.2f} {60 / seconds:12.1f} {read:12.0f} {whole:10.0f}")


if __name__ == "__main__":
    raise SystemExit(local_judging(*sys.argv[1:2]))
