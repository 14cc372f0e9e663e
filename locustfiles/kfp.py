"""Load test of Kubeflow Pipelines: ``locust -f locustfiles/kfp.py`` (``--help`` lists the options)."""

from harness.drive.user import PipelineUser


class KfpRuns(PipelineUser):
    """Runs of one pipeline, submitted when the schedule says."""

    platform = "kfp"
