"""What needs a person, and what becomes of their verdict."""
