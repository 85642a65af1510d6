"""What was agreed: the terms, whether they still hold, decisions, and the files that work depends on."""
