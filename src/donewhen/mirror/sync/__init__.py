"""Bringing issues up to date with jobs: what is there, what differs, the plan, and carrying it out."""
