"""Metrics from Prometheus or from `/metrics` endpoints."""
