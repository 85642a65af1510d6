"""Margin between two options from token log-probabilities, and sampling by it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b


def logprob_margin(top: Iterable[tuple[str, float]], options: tuple[str, str]) -> float | None:
    """Return the log-probability of the first option minus that of the second; None if no token starts either.

    ``top`` are the likeliest tokens where the option begins. A token may start an option with a space, a capital or
    only a part of the word; a token that starts both is ignored. An option without a token gets the lowest
    log-probability in ``top``, so that the margin is a lower bound.
    """
    shares = [0.0, 0.0]
    least = 0.0
    normalised = [option.strip().casefold() for option in options]
    for token, logprob in top:
        least = min(least, logprob)
        start = token.strip().casefold()
        begins = [bool(start) and option.startswith(start) for option in normalised]
        if begins[0] != begins[1]:
            shares[begins.index(True)] += math.exp(logprob)
    if not any(shares):
        return None
    first, second = (math.log(share) if share > 0.0 else least for share in shares)
    return first - second


def draw_option(margin: float, temperature: float, sample: int, about: str) -> bool:
    """Return whether sampling at a temperature picks the first option.

    Deterministic: the random number depends only on temperature, sample and ``about``, so that two sets of rules are
    compared with the same random numbers.
    """
    if temperature <= 0.0:
        return margin > 0.0
    seed = blake2b(f"{temperature}\n{sample}\n{about}".encode(), digest_size=8).digest()
    uniform = (int.from_bytes(seed, "big") + 0.5) / 2**64
    # Compare log-odds, which avoids overflow in exp().
    return margin / temperature > math.log(uniform / (1.0 - uniform))
