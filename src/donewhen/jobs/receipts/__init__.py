"""Attestations: receipts that can be checked without the workspace."""
