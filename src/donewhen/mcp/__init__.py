"""Tools for agents: look, show, ask. None of them sets a verdict or agrees."""
