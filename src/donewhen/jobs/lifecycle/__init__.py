"""The life cycle of a job: start, evaluate, block or ask, complete, invalidate, plan."""
