"""What the ledger says about a job, and how its plan file shows it."""
