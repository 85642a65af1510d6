"""What limits the strength of evidence, and what speaks for it: one table, which is also in the documentation."""

from __future__ import annotations

from typing import Literal, NamedTuple

from donewhen.jobs.ledger.evidence_levels import EvidenceLevel

Who = Literal["agent", "person", "project", "machine"]
"""Who can make evidence stronger: the agent with other work or tests, a person with another contract or by looking at
the work, the project with another runner, or somebody with another machine."""

MAX_SURVIVING = 1 / 3
"""The largest share of small changes of the work that its tests may miss in strong evidence."""


class Limit(NamedTuple):
    """What a fact limits evidence to, what it means, and what makes the evidence stronger."""

    at_most: EvidenceLevel
    means: str
    better: str
    who: Who


LIMITS: dict[str, Limit] = {
    "claimed": Limit(
        "asserted", "Truth mode is off, so nothing was checked.", "agree on `truth_mode: strict`", "person"
    ),
    "file_exists": Limit("weak", "The check asks only for a file.", "agree on a check of its content", "person"),
    "file_content": Limit(
        "weak",
        "The file has the agreed content, and nobody has looked at the rest of it.",
        "have a person look at it: donewhen sign-off",
        "person",
    ),
    "work_tree": Limit(
        "weak",
        "The command ran in the work tree, where the work can change what judges it.",
        "agree again, so that checks run in a clean room: donewhen agree",
        "person",
    ),
    "tests_of_work": Limit(
        "weak",
        "No test was agreed to, and the tests that came with the work are not known to fail without it.",
        "add tests that fail without the work",
        "agent",
    ),
    "file_signed_off": Limit("fair", "A person looked at the files, besides the check of the content.", "", "person"),
    "signed_off": Limit("fair", "A person decided; no check can be run again.", "agree on a check", "person"),
    "judged": Limit("fair", "A judge read the work, and judges err.", "agree on a check that runs", "person"),
    "isolation": Limit(
        "fair",
        "The command was not kept apart by namespaces, so it could reach more than its room.",
        "run it on a machine with namespaces: donewhen doctor",
        "machine",
    ),
    "network": Limit(
        "fair",
        "The command had the network of the machine, so its result may depend on other machines.",
        "agree on `network: own`",
        "person",
    ),
    "environment_unknown": Limit(
        "fair",
        "Nobody has agreed to the programs and packages that the command found.",
        "agree again: donewhen agree",
        "person",
    ),
    "provisional": Limit(
        "fair",
        "Files of the server's branch could not be compared with the server.",
        "run it where the server can be reached",
        "machine",
    ),
    "no_tests_listed": Limit(
        "fair",
        "The command lists no tests, so nothing says which were run.",
        "agree on a command that starts pytest, unittest or node --test itself",
        "project",
    ),
    "no_controls": Limit(
        "fair",
        "There were no controls in the run: no test that had to fail, and none that had to pass.",
        "agree on a command that starts pytest, unittest or node --test itself",
        "project",
    ),
    "not_probed": Limit(
        "fair", "The tests were not probed.", "complete it with `[strength] time` switched on", "machine"
    ),
    "new_tests_only": Limit(
        "fair",
        "No test was agreed to; the tests that came with the work fail without it.",
        "have a person agree to tests before the work",
        "person",
    ),
    "not_red": Limit("fair", "No test fails if the work is undone.", "add a test that fails without the work", "agent"),
    "red_unknown": Limit(
        "fair", "Whether a test fails without the work is not known.", "add a test that fails without it", "agent"
    ),
    "needs_company": Limit(
        "fair",
        "Some tests pass only together with others, or only in their order.",
        "make the tests independent of each other",
        "agent",
    ),
    "alone_unknown": Limit(
        "fair",
        "No test was run alone or in another order.",
        "agree on a command that starts pytest, and give probes more time",
        "project",
    ),
    "mutants_unknown": Limit(
        "fair", "No small change of the work was tried.", "give probes more time; only Python can be changed", "machine"
    ),
    "mutants_survive": Limit(
        "fair",
        "More than a third of the small changes of the work that were tried went unnoticed.",
        "add tests that notice them: donewhen why",
        "agent",
    ),
    "doubtful": Limit(
        "fair",
        "Work of this size, with these probes, is wrong more often than other work.",
        "do it in smaller jobs, with more tests",
        "agent",
    ),
}
"""What limits evidence, from the lowest level to the highest."""

SUPPORTS: dict[str, str] = {
    "clean_room": "It ran in the clean room: the agreed files with the work.",
    "kept_apart": "It was kept apart by namespaces, with a network of its own.",
    "environment": "A person agreed to the programs and packages that it found.",
    "agreed_tests": "Tests that a person agreed to have passed.",
    "controls": "The controls in the run came out as they must.",
    "red_before": "Tests fail without the work.",
    "independent": "The tests pass alone and in another order, as far as that was tried.",
    "mutants_noticed": "At least two thirds of the small changes of the work that were tried were noticed.",
}
"""What speaks for evidence."""
