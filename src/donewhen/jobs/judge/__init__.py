"""Criteria that a judge decides: missions, the ticket made of a job, the verdict, and people who overrule it."""
