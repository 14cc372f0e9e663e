from tests.simulator.conftest import serve

__all__ = ["serve"]
