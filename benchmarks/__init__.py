"""Benchmarks. They print ratios within one run; no test depends on them."""
