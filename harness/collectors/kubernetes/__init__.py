"""Nodes, pods, events, claims and workflows of a cluster, from list and watch."""
