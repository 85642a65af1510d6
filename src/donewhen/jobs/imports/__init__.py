"""Import jobs from other tools: Backlog.md, spec-kit, OpenSpec and feature lists. No imported job counts as done."""
