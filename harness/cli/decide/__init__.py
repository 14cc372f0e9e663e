"""Verbs that predict."""
