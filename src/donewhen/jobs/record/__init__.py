"""The state of a job according to the ledger, and how it is written into the plan file."""
