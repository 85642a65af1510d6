"""The learn command from start to finish, reports, replay, and audits of a judge."""
