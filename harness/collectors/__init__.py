"""Observes a platform while a test runs: one file per source, in a process of its own.

`collector` defines what a collector is and finds all of them, `observer` runs them. Third parties add collectors under
the entry point group ``pipeswarm.collectors``.
"""
