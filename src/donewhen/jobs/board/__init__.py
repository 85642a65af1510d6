"""Overview of all jobs: the survey, its file index, the dashboard and the task tracker."""
