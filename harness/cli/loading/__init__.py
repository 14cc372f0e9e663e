"""Verbs that load a platform, here or in its cluster."""
