"""The page: jobs, judges and people in one place. It shows, and hands verdicts on; it decides nothing."""
