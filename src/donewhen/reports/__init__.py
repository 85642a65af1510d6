"""What people look at: a report as a page, or as lines for a terminal. Nothing is decided here."""
