"""What the gate itself saw: requirements, commands, file checks, and the store that keeps the results."""
