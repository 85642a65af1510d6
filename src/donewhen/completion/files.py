"""A checker that requires files to exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    from donewhen.filesystem import Filesystem


class FileExistsChecker:
    """Complete when every required file exists; a directory is not a file.

    Lenient (the default): without a filesystem in the context there is nothing to check, which is complete.
    ``strict=True`` is better where files are the point: no filesystem is *incomplete*, and so is a file that
    holds nothing but white space.
    """

    def __init__(self, required_files: Sequence[str], *, strict: bool = False) -> None:
        if isinstance(required_files, str):
            raise TypeError(f"required_files must be a tuple of paths: ({required_files!r},)")
        self.required_files = tuple(required_files)
        self.strict = strict
        if not self.required_files:
            raise ValueError("required_files is empty: a check of nothing would always pass")

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        filesystem = context.filesystem
        if filesystem is None:
            if self.strict:
                return TaskCompletionResult.incomplete(
                    f"There is no filesystem in which to look for the required files: {', '.join(self.required_files)}",
                    code=ReasonCode.NO_FILESYSTEM,
                )
            return TaskCompletionResult.ok("No filesystem to check.")
        missing = [_describe_missing(path, filesystem) for path in self.required_files if not filesystem.is_file(path)]
        if missing:
            return TaskCompletionResult.incomplete(
                f"Missing required files: {', '.join(missing)}", code=ReasonCode.FILES_MISSING
            )
        if self.strict:
            empty = [path for path in self.required_files if not filesystem.read_bytes(path).strip()]
            if empty:
                return TaskCompletionResult.incomplete(
                    f"Required files are empty: {', '.join(empty)}", code=ReasonCode.FILES_EMPTY
                )
        return TaskCompletionResult.ok("All required files exist.")


def _describe_missing(path: str, filesystem: Filesystem) -> str:
    if filesystem.is_dir(path):
        return f"{path} (is a directory)"
    return f"{path} (is not a regular file)" if filesystem.exists(path) else path
