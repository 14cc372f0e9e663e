"""Argo's manifests and names."""
