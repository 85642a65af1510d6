"""Mirror jobs to GitHub issues and waves to milestones. Nothing on GitHub counts as evidence."""
