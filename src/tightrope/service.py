"""The clients of a learner that is served over HTTP. The implementation is in `tightrope.ops`."""

from tightrope.ops.client import AsyncClient, Client, ServiceError

__all__ = ["AsyncClient", "Client", "ServiceError"]
