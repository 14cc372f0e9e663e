"""Watches a platform while a test runs: one file per source, in a process of its own.

`observer` runs the collectors, `collector` says what one is and finds them; a third party adds one under the entry
point group ``pipeswarm.collectors``.
"""
