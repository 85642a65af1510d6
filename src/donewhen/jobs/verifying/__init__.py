"""Does a branch keep what was agreed on its base? The contract of the base is run again on the branch's work."""

from donewhen.jobs.verifying.cases import Case, JobCases, Reason, Verification
from donewhen.jobs.verifying.verify import verify

__all__ = ["Case", "JobCases", "Reason", "Verification", "verify"]
