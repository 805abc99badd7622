"""HTTP connections with a time limit for the headers of a request."""

import asyncio
from typing import Any, final

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEADER_SECONDS", "ImpatientProtocol"]

HEADER_SECONDS = 10.0
"""Seconds from the opening of a connection, or its last answer, to the end of the next headers."""


@final
class ImpatientProtocol(H11Protocol):
    """HTTP/1.1, with a time limit for headers that trickle in.

    uvicorn itself closes a connection on which nothing arrives at all, and only after an answer.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the timer of the first headers."""
        super().connection_made(transport)
        self._start()

    def on_response_complete(self) -> None:
        """Start the timer of the next headers."""
        super().on_response_complete()
        self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _give_up(self) -> None:
        waiting = self.cycle is None or self.cycle.response_complete
        if waiting and not self.transport.is_closing():
            self.transport.close()
