"""How far one word was from the other: what the log-probabilities of a token say of two options."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b


def logprob_margin(top: Iterable[tuple[str, float]], options: tuple[str, str]) -> float | None:
    """The log-probability of the first option less that of the second; None where the token begins neither.

    ``top`` are the likeliest tokens at the place where the option begins. Each of them may begin an option in its own
    way: with a space, with a capital, with a part of the word. One that begins both says nothing. An option that is
    not among them is taken to be as likely as the least likely that is: the margin is a lower bound then.
    """
    shares = [0.0, 0.0]
    least = 0.0
    wanted = [option.strip().casefold() for option in options]
    for token, logprob in top:
        least = min(least, logprob)
        begun = token.strip().casefold()
        begins = [bool(begun) and one.startswith(begun) for one in wanted]
        if begins[0] != begins[1]:
            shares[begins.index(True)] += math.exp(logprob)
    if not any(shares):
        return None
    first, second = (math.log(share) if share > 0.0 else least for share in shares)
    return first - second


def draw_option(margin: float, temperature: float, sample: int, about: str) -> bool:
    """Whether the first option is drawn, at a temperature.

    The same draw of the same question is the same answer. And it is the same luck under whatever rules the question is
    asked: two sets of rules differ by what they say, not by chance.
    """
    if temperature <= 0.0:
        return margin > 0.0
    chance = blake2b(f"{temperature}\n{sample}\n{about}".encode(), digest_size=8).digest()
    luck = (int.from_bytes(chance, "big") + 0.5) / 2**64
    # The log-odds of the luck, so that nothing is ever raised to a power that is too large.
    return margin / temperature > math.log(luck / (1.0 - luck))
