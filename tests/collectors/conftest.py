from tests.real_kubernetes import real_cluster

__all__ = ["real_cluster"]
