"""Mutants: small changes to the deciding code that some test should notice."""
