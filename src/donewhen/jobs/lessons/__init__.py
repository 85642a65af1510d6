"""Lessons from earlier jobs: the file, the search, and each job's answers to the lessons it was given."""
