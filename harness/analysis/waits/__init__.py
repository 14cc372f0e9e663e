"""Where each run's time went."""
