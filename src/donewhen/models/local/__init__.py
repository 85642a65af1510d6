"""A model on this machine: weights, download, chat client, and code that supports a small model."""
