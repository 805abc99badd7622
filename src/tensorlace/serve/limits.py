"""Limits on the size of request bodies and on the time in which they arrive."""

import asyncio
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, final

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BODY_SECONDS", "LARGEST_BODY", "Limits", "error"]

LARGEST_BODY = 10 * 2**20
"""Bytes of one body."""

LARGEST_TOTAL = 2**28
"""Bytes of all bodies at a time."""

BODY_SECONDS = 30.0
"""Seconds within which a body has to arrive."""


_CLOSE = {"connection": "close"}


def error(status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Answer with one line, as the Open Inference Protocol wants it."""
    return JSONResponse({"error": " ".join(text.split())}, status, headers)


@final
class Limits:
    """ASGI middleware that hands on whole bodies, or answers 413, 408 or 503 without reading on.

    What goes wrong further in is 500 and a line on standard error.
    """

    def __init__(self, app: ASGIApp, seconds: float = BODY_SECONDS) -> None:
        self._app, self._seconds, self._held = app, seconds, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        parts: list[bytes] = []
        try:
            refusal = await self._read(scope, receive, parts)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            await self._answer(scope, _replay(b"".join(parts), receive), send)
        except _Gone:
            return
        finally:
            self._held -= sum(map(len, parts))

    async def _read(self, scope: Scope, receive: Receive, parts: list[bytes]) -> Response | None:
        """Append the body to ``parts``, or say why not."""
        limit = f"the body is larger than {LARGEST_BODY // 2**20} MiB: send fewer rows at a time"
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 12 or int(declared) > LARGEST_BODY:
            return error(413, limit, _CLOSE)
        size, more = 0, True
        try:
            async with asyncio.timeout(self._seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Gone
                    parts.append(message.get("body", b""))
                    more = message.get("more_body", False)
                    size, self._held = size + len(parts[-1]), self._held + len(parts[-1])
                    if size > LARGEST_BODY:
                        return error(413, limit, _CLOSE)
                    if self._held > LARGEST_TOTAL:
                        text = "too many large requests at a time: try again in a moment"
                        return error(503, text, {**_CLOSE, "retry-after": "1"})
        except TimeoutError:
            return error(408, f"the body did not arrive within {self._seconds:g} seconds", _CLOSE)
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception as problem:
            line = " ".join(f"{type(problem).__name__}: {problem}".split())
            print(f"error: {scope['method']} {scope['path']!r}: {line}", file=sys.stderr)
            if os.environ.get("TENSORLACE_TRACEBACK"):
                traceback.print_exc()
            if started:
                raise
            await error(500, "something is wrong in the server; its log says what")(
                scope, receive, send
            )


class _Gone(Exception):  # noqa: N818
    """The client has disconnected."""


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes after it."""
    pieces: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pieces.pop() if pieces else await receive()

    return next_message
