"""Sync issues with jobs: read, compare, plan, apply."""
