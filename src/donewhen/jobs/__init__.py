"""Is this job done? Jobs as Markdown, what was agreed about them, and the record of what happened."""
