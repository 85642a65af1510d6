"""Sections and tools that are ready to use."""
