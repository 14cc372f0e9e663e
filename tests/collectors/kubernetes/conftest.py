from tests.support.real_cluster_runs import namespace

__all__ = ["namespace"]
