"""Controls: tests of the gate in a test run, which must fail or pass, and say whether its result can be trusted."""
