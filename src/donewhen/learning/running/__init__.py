"""Learning runs: events, state, epochs and run folders."""
