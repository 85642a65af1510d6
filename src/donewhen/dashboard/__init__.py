"""The dashboard: its data, and one HTML page around it that needs no server and no network."""
