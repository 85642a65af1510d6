"""The web pages: jobs, missions and reviews. They display data and submit verdicts; they decide nothing."""
