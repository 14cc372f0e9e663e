"""Load test of Argo Workflows: ``locust -f locustfiles/argo.py`` (``pipeswarm load argo --options``)."""

from pipeswarm import PipelineUser


class ArgoWorkflows(PipelineUser):
    """Workflows from one manifest or template, created when the schedule says."""

    platform = "argo"
