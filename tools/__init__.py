"""What the project's own chores need; not part of the package."""
