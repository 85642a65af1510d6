"""What can go wrong with a mirror, by what can be done about it."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError, ExitCode


class MirrorError(DonewhenError):
    """Something here, or in the rights that one has there, has to be put right first."""

    code = "github"
    exit_code = ExitCode.USAGE


class UnavailableError(MirrorError):
    """The server can't be used just now. What was done is kept, and the next sync goes on from there."""

    code = "github_unavailable"
    exit_code = ExitCode.INTERNAL


class UncertainError(UnavailableError):
    """Nobody answered to a request that makes something: it may have been made."""


class RefusedError(MirrorError):
    """The server refuses this one request, and would refuse it again."""


class GoneError(MirrorError):
    """What was asked for is not there, or one may not see it."""
