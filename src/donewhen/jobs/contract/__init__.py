"""Agreements: their terms and state, decisions, and the files that a job depends on."""
