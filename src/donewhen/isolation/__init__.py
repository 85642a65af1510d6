"""Runs commands apart from everything else on the machine, as well as it allows."""
