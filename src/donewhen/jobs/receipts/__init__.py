"""Attestations: receipts that others can check without the workspace."""
