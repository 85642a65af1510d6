"""Jobs out of what other tools keep: Backlog.md, spec-kit, OpenSpec, and lists of features. Nothing is done by that."""
