"""Workflows and their controller, Argo's: graphs of pods, the queue, what steps do, and the nodes in the status."""
