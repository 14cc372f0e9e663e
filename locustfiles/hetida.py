"""Load test of hetida designer: ``locust -f locustfiles/hetida.py`` (``--help`` lists the options)."""

from pipeswarm import PipelineUser


class HetidaExecutions(PipelineUser):
    """Executions of one transformation, requested when the schedule says."""

    platform = "hetida"
