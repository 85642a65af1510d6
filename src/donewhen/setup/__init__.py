"""Sets donewhen up in a project with one command, proves that it holds, and takes everything back."""
