"""GitHub: a job is an issue there, a wave is a milestone. What people do there is never taken for proof."""
