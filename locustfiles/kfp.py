"""Load test of Kubeflow Pipelines: ``locust -f locustfiles/kfp.py`` (``pipeswarm load kfp --options``)."""

from pipeswarm import PipelineUser


class KfpRuns(PipelineUser):
    """Runs of one pipeline, submitted when the schedule says."""

    platform = "kfp"
