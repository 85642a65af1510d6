"""Criteria that a judge decides: missions, the ticket built from a job, the verdict, and overrides by people."""
