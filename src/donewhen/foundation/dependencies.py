"""Finds the packages that donewhen needs, if it runs by its path and the interpreter does not find them itself.

An isolated interpreter has no user site and no folders of variables. An installation that lies elsewhere (in the user
site, or made with ``--target``) has its dependencies beside it.
"""

from __future__ import annotations

import os
import pwd
import sys

NEEDED = ("click", "msgspec", "rich", "yaml")
"""The packages without which donewhen does not start."""


def add_dependencies(around: str) -> list[str]:
    """Search the folder ``around`` the package and the account's user site, behind all others, if a package is missing.

    Return the packages that are still missing.
    """
    for folder in (around, _user_site()):
        if not _missing():
            return []
        sys.path.append(folder)
    return _missing()


def _missing() -> list[str]:
    finders = list(sys.meta_path)
    return [name for name in NEEDED if not any(finder.find_spec(name, None) for finder in finders)]


def _user_site() -> str:
    # Not from HOME, which anybody can set.
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = "/nonexistent"
    version = sys.version_info
    return f"{home}/.local/lib/python{version.major}.{version.minor}/site-packages"
