"""A learner over HTTP: asked and told by many, written by one, read without waiting. `Client` speaks to it."""

from tightrope.service.client import Client, ServiceError

__all__ = ["Client", "ServiceError"]
