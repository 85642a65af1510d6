"""What a model proposes, and what of it is taken: eligibility, requests, strict reading, closure, hypotheses."""
