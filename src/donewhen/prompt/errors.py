"""What can be wrong with a prompt."""

from donewhen.foundation.errors import DonewhenError, ExitCode


class PromptError(DonewhenError):
    """A prompt, section or tool is not put together rightly."""

    code = "prompt"
    exit_code = ExitCode.USAGE
