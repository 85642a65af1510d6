"""Codex as an agent runtime: its command hooks and its configuration."""
