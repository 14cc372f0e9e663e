from tests.support.e2e import locust, platform

__all__ = ["locust", "platform"]
