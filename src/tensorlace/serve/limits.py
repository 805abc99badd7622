"""What a request may cost before anybody looks at it: size and time of its body."""

import asyncio
import os
import sys
import traceback
from typing import Any, final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BODY_SECONDS", "LARGEST_BODY", "Limits", "error"]

LARGEST_BODY = 10 * 2**20
"""Bytes."""

BODY_SECONDS = 30.0
"""Within which a body has to arrive."""


def error(status: int, text: str, **headers: str) -> JSONResponse:
    """Answer with one line, as the Open Inference Protocol wants it."""
    return JSONResponse({"error": " ".join(text.split())}, status, headers)


@final
class Limits:
    """ASGI middleware that hands on whole bodies, or answers 413 or 408 without reading on.

    What goes wrong further in is 500 and a line on standard error.
    """

    def __init__(self, app: ASGIApp, seconds: float = BODY_SECONDS) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await self._body(scope, receive)
        if body is None:  # nobody is there any more
            return
        if isinstance(body, JSONResponse):
            await body(scope, receive, send)
            return
        await self._answer(scope, _replay(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | JSONResponse | None:
        limit = f"the body is larger than {LARGEST_BODY // 2**20} MiB: send fewer rows at a time"
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 12 or int(declared) > LARGEST_BODY:
            return error(413, limit, connection="close")
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self._seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > LARGEST_BODY:
                        return error(413, limit, connection="close")
        except TimeoutError:
            text = f"the body did not arrive within {self._seconds:g} seconds"
            return error(408, text, connection="close")
        return b"".join(parts)

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


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then whatever comes after it."""
    pieces: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return pieces.pop() if pieces else await receive()

    return next_message
