"""How much is taken."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What is taken at the most."""

    body: int = 8 * 2**20  #: bytes of a request
    patience: float = 30.0  #: seconds until all of it is there
    rate: float = 5000.0  #: requests a second from one address, in the long run; as many at once
    waiting: int = 250  #: requests that wait for one learner; fewer than are answered at once
