"""The plan files: Markdown with frontmatter, read as typed jobs and projects, and the workspace that holds them."""
