"""Quantiles, comparisons and trends."""
