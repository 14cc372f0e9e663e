"""Load test of Dask clusters: ``locust -f locustfiles/dask_tenants.py`` (``pipeswarm options dask_tenants``)."""

from pipeswarm import PipelineUser


class DaskTenants(PipelineUser):
    """Tenants with ephemeral Dask clusters, started when the schedule says."""

    platform = "dask_tenants"
