"""The hash-chained event log, approvals, signatures, and the codes of findings."""
