"""Verbs before a first test."""
