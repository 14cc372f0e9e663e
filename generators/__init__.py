"""Scenario generation: a spec or a pipeline becomes columns, and the columns become a file."""
