"""Verify a branch: run the contract of its base branch again on the branch's work."""

from donewhen.jobs.verifying.cases import CaseReason, JobCases, Verification, VerificationCase
from donewhen.jobs.verifying.verify import verify_branch

__all__ = ["CaseReason", "JobCases", "Verification", "VerificationCase", "verify_branch"]
