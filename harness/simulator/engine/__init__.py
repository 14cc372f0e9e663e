"""The discrete-event core: simulated time, queues in it, and random durations. It knows nothing of platforms."""
