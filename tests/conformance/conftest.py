from tests.support.serving import environment, serve, served, training

__all__ = ["environment", "serve", "served", "training"]
