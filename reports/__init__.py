"""Renderers of a result: a page, JSON, Markdown and JUnit XML for the run folder, and a summary for the terminal."""
