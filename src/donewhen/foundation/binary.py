"""The two verdicts on a piece of work, in ledgers, tickets, run events and answers of models."""

from __future__ import annotations

from typing import Literal

Binary = Literal["pass", "fail"]
