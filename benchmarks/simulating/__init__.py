"""What a simulated pod costs, in simulated time and served in wall time: what the simulator's benchmark measures."""
