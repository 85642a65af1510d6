"""Claude Code as an agent runtime: its command hooks and its settings file."""
