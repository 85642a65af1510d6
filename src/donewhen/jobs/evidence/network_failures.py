"""Says why a failed command may have failed: it was kept apart from other machines."""

from __future__ import annotations

import re

from donewhen.jobs.evidence.test_report import ReportedRun

# What the C library, the kernel, and the runtimes of programming languages say if a name has no address or an address
# can't be reached. A server that does not run is something else.
_NO_NETWORK = re.compile(
    r"Name or service not known|Temporary failure in name resolution|nodename nor servname provided"
    r"|No address associated with hostname|Name does not resolve|Try again \(EAI_AGAIN\)|Unknown host\b"
    r"|(?:Could not|Couldn't|Can't|Cannot|Failed to|failed to|unable to|Unable to) (?:resolve|lookup|look up)\b"
    r"|Network is unreachable|No route to host|network is unreachable|no such host|dial tcp: lookup "
    r"|ENETUNREACH|EHOSTUNREACH|EAI_AGAIN|getaddrinfo ENOTFOUND|UnknownHostException|Resolving timed out"
)
_SENTENCE = (
    "its output shows a failed connection, and checks of this job have no network but a loopback of their own; "
    "if it needs other machines, add `network: host` to the plan, which a person has to agree to"
)


def network_notes(run: ReportedRun, network: str) -> tuple[str, ...]:
    """What to say about a failed run: nothing, or that it had no network. It does not decide anything."""
    if run.passed or network != "own" or not _NO_NETWORK.search(run.result.output):
        return ()
    return (_SENTENCE,)
