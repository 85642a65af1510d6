"""The gates: pure functions that take the facts of a job and return the reasons why it is not done."""
