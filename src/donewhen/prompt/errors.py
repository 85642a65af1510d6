"""Errors in prompts."""

from donewhen.foundation.errors import DonewhenError, ExitCode


class PromptError(DonewhenError):
    """A prompt, section or tool is defined incorrectly."""

    code = "prompt"
    exit_code = ExitCode.USAGE
