"""What the agents' own clients call. `hook` is the hot path."""
