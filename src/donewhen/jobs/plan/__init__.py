"""Plan files: Markdown with frontmatter, parsed into typed jobs and projects, and the workspace that holds them."""
