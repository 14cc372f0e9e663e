"""What every served simulation shares: a listening process, simulated time tied to wall time, garbage collection."""
