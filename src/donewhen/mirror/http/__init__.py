"""GitHub API client: address and token, requests, retries, caching, typed responses."""
