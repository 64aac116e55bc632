"""The client of a learner that is served over HTTP. The implementation is in `tightrope.ops`."""

from tightrope.ops.client import Client, ServiceError

__all__ = ["Client", "ServiceError"]
