"""All jobs at a glance: the survey, its index, and the dashboard and task tracker that are kept up to date."""
