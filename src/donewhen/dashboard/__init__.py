"""The dashboard: its data, and a single HTML page that needs no server and no network."""
