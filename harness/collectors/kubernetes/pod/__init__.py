"""Pods: their lives, events, requests, pulls and logs."""
