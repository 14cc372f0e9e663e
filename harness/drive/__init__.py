"""The load: a test as a state machine, dispatch on an absolute clock, the ledger, and the wiring of Locust.

A locustfile imports `harness.drive.user.PipelineUser`. This package itself imports nothing: Locust patches the standard
library when it is imported, and the dispatcher can be used and tested without that.
"""
