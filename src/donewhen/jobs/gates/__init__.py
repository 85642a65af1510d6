"""The gates: pure functions that look at the facts of a job and say what is missing."""
