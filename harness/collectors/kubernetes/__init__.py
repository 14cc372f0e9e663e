"""Nodes, pods, events, volume claims and workflows of a cluster, by list and watch."""
