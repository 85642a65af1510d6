"""What `donewhen doctor` checks: this machine, the settings, and the hooks of each agent runtime."""
