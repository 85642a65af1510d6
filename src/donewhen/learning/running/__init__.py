"""One run of learning: its events, its state as a fold over them, its epochs, and its folder on disk."""
