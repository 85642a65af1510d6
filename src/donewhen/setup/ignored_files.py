"""The lines that a project's ``.gitignore`` needs for what donewhen writes outside of its own folder."""

from __future__ import annotations

from donewhen.adapters.hook_files import BACKUP_SUFFIX

_TITLE = "# donewhen: copies of files from before it changed them"


def ignored_names() -> tuple[str, ...]:
    """The patterns of files that donewhen writes and that nobody should commit."""
    return (f"*{BACKUP_SUFFIX}",)


def ignore_lines(before: str) -> str:
    """What has to be added to a ``.gitignore`` with this content; empty if nothing is missing."""
    present = {line.strip() for line in before.splitlines()}
    missing = [name for name in ignored_names() if name not in present]
    if not missing:
        return ""
    ends_in_line = not before or before.endswith("\n")
    gap = ("" if ends_in_line else "\n") + ("\n" if before else "")
    return gap + "\n".join((_TITLE, *missing)) + "\n"
