"""Does the record hold? Chains, plan files, evidence and labels, checked against each other."""
