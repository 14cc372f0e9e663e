"""Infers specs: from a pipeline, a workflow, a sample or a recorded run.

An inferred spec is a plain document that a user could have written, so it can be printed and edited.
"""
