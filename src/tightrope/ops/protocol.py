"""HTTP/1.1 connections that a client cannot hold: a time limit on requests, and room for new connections."""

from asyncio import TimerHandle, Transport
from time import monotonic
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Connections at once; a process may open only so many files.
MOST_CONNECTIONS = 500

#: Seconds from the first byte of a request, or from the connection, until its headers are complete.
HEADERS_WITHIN = 10.0


class PatientProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time.

    The time covers whatever the client sends while no request is being answered: the headers of the next one, or the
    rest of a body that was refused. Beyond `MOST_CONNECTIONS`, a new connection takes the place of the one that has
    waited longest for a whole request, body included, so that slow clients cannot keep others out.
    """

    headers_within = HEADERS_WITHIN
    most_connections = MOST_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: TimerHandle | None = None
        self.waiting_since = monotonic()

    @property
    def answering(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def waiting(self) -> bool:
        """Whether the client has to send something: a request, or the rest of its body."""
        return not self.answering or self.cycle.more_body

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Start the time limit; make room if there are too many connections."""
        super().connection_made(transport)
        self._limit()
        if len(self.connections) > self.most_connections:
            waiting = [one for one in self.connections if isinstance(one, PatientProtocol) and one.waiting]
            min(waiting, key=lambda one: one.waiting_since).close()

    def data_received(self, data: bytes) -> None:
        """Pass the data on; limit the time until the rest of a request arrives."""
        super().data_received(data)
        self._limit()

    def on_response_complete(self) -> None:
        """Count the time that the connection waits from now on."""
        self.waiting_since = monotonic()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the time limit."""
        self._cancel()
        super().connection_lost(exc)

    def close(self) -> None:
        """Close the connection at once; what could not be sent is dropped."""
        self._cancel()
        self.transport.abort()

    def _limit(self) -> None:
        if self.answering:
            self._cancel()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.headers_within, self.close)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
