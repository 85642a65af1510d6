"""From start to promise: starting, resting, evaluating, completing, invalidating, planning."""
