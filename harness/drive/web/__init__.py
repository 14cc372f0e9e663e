"""Locust's web UI and the pages of metrics: the form, its tab, who may press what."""
