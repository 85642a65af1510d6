"""GitHub's Copilot CLI as an agent runtime: its command hooks and its hook files."""
