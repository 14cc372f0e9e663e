"""Throughput, its limits, and how it scales with nodes."""
