"""`donewhen completion`: print the shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from donewhen.cli._app import app, common_options
from donewhen.cli._output import Output
from donewhen.foundation.errors import ExitCode

_WHERE = {
    "bash": 'eval "$(donewhen completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(donewhen completion zsh)"   in ~/.zshrc',
    "fish": "donewhen completion fish > ~/.config/fish/completions/donewhen.fish",
}


@click.command(epilog="\b\nTo enable it:\n" + "\n".join(f"  {shell}: {line}" for shell, line in _WHERE.items()))
@click.argument("shell", type=click.Choice(list(_WHERE)))
@common_options
@click.pass_obj
def command(output: Output, shell: str) -> ExitCode:
    """Print the completion script for SHELL."""
    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the choice above names what click has
        raise click.UsageError(f"click has no completion for {shell}")
    script = kind(app, {}, "donewhen", "_DONEWHEN_COMPLETE").source()
    if not output.json:
        click.echo(script)
    return output.finish(ExitCode.PASS, {"shell": shell, "script": script})
