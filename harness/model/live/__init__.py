"""The state of a running test, and of what observes it."""
