"""The story that `donewhen demo` tells."""
