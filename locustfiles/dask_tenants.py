"""Load test of Dask clusters: ``locust -f locustfiles/dask_tenants.py`` (``pipeswarm load dask_tenants --options``)."""

from pipeswarm import PipelineUser


class DaskTenants(PipelineUser):
    """Tenants with ephemeral Dask clusters, started when the schedule says."""

    platform = "dask_tenants"
