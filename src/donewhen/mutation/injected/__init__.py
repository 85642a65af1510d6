"""Code that runs in the interpreter of the checked project: standard library and pytest only."""
