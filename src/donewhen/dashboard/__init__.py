"""The dashboard: its data, and one page that is written as a file without network, or served with live data."""
