"""What happened, and on whose word: hash-chained entries, approvals, signatures, and the codes of findings."""
