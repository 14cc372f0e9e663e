"""Scenario synthesis: a spec or a pipeline becomes columns, the columns become a file."""
