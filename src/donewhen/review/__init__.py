"""The review queue: questions for people, and recording their verdicts."""
