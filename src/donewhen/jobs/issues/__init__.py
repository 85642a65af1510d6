"""A job as an issue on GitHub: what it should say, and whether the last sync saw that."""
