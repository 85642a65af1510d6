"""A model on this machine: its weights, how they are fetched, and the code that helps a small model."""
