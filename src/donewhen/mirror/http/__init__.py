"""Talking to the GitHub API: addresses and tokens, requests, retries, caching, typed answers."""
