"""The scripted story of `donewhen demo`."""
