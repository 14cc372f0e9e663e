"""Spot nodes: what evictions did to a test, and what they would do with other retries."""
