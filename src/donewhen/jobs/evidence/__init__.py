"""Evidence that the gate collects itself: requirements, commands, file checks, and the store for the results."""
