"""What makes a test doubtful: its load, its observation, its size."""
