from tests.support.serving import serve

__all__ = ["serve"]
