"""Verbs for what tests leave."""
