"""What comes of a run: learning a mission from start to finish, its report, its replay, and audits of a judge."""
