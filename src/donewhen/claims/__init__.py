"""What an agent claimed at the end of a session, and whether it is true now."""
