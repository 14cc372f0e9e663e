"""Verbs that look at tests, and at platforms that something else loads."""
