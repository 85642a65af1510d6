"""What everything stands on; standard library only."""
