"""A job's GitHub issue: its expected content, and whether the last sync matched it."""
