"""The load: open-model dispatch on an absolute clock, the ledger, and all of Locust's wiring.

A locustfile declares a user class and names its platform; everything else follows from the options::

    from harness.drive import PipelineUser

    class KfpRuns(PipelineUser):
        platform = "kfp"
"""

from harness.drive.user import PipelineUser

__all__ = ["PipelineUser"]
