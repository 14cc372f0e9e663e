"""Specs that are inferred: from a pipeline, a workflow, a sample, a recorded run.

An inferred spec is the plain document that a user could have written, so it can be shown and edited.
"""
