"""Argo's workflows and their controller."""
