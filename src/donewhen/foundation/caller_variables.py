"""The variables of whoever called donewhen, as data.

donewhen's own process has only the variables that :mod:`donewhen.foundation.start_variables` names. Whatever asks for a
variable by a name from the settings, passes variables on to commands or looks for an agent reads them here.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Mapping

_OTHERS: dict[str, str] = {}

CALLER_VARIABLES: Mapping[str, str] = ChainMap(os.environ, _OTHERS)
"""All variables of the caller. In a program that uses donewhen as a library, that is ``os.environ``."""


def keep_as_data(variables: Mapping[str, str]) -> None:
    """Remember variables that were taken out of the environment."""
    _OTHERS.update(variables)
