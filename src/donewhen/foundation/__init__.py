"""Basic building blocks for all other packages; standard library only."""
