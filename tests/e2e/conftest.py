from tests.support.e2e import locust, platform, shared_platform

__all__ = ["locust", "platform", "shared_platform"]
