"""Gemini CLI as an agent runtime: its command hooks and its settings."""
