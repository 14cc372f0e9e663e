"""A discrete-event model of the platform, run fast or served behind HTTP."""
