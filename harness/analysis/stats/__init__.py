"""Quantiles, comparisons of tests, and trends, each with its uncertainty."""
