"""Errors of the mirror, grouped by what the user can do about them."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError, ExitCode


class MirrorError(DonewhenError):
    """Something in the project or in the token's permissions has to be fixed first."""

    code = "github"
    exit_code = ExitCode.USAGE


class UnavailableError(MirrorError):
    """The server is unavailable. Completed steps are kept, and the next sync continues from there."""

    code = "github_unavailable"
    exit_code = ExitCode.INTERNAL


class UncertainError(UnavailableError):
    """A create request got no response, so the resource may or may not exist."""


class RefusedError(MirrorError):
    """The server rejected this request and would reject it again."""


class GoneError(MirrorError):
    """The resource does not exist, or the token can't see it."""
