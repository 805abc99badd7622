"""The HTTP server: its socket, its time limits and its end."""

import socket
from collections.abc import Callable

import uvicorn

from tensorlace.errors import SourceError
from tensorlace.machines.fitted_model import FittedModel, HoldsModel
from tensorlace.serve.app import create_app
from tensorlace.serve.protocol import ImpatientProtocol

__all__ = ["serve"]

STOP_SECONDS = 3
"""Seconds for answers under way once the server is told to stop."""

IDLE_SECONDS = 5
"""Seconds that a connection may be idle between two requests."""


def serve(
    model: FittedModel | HoldsModel,
    name: str = "model",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    target: str | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Answer requests until the process is told to stop (SIGTERM, SIGINT).

    Answers under way are finished, for at most three seconds.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
    name : str
        Of the model, in ``/v2/models/{name}``.
    host, port : str, int
        Where to listen: by default only for this machine. Port 0 takes any that is free.
    target : str, optional
        What is predicted.
    started : callable, optional
        Called with the address when the socket is open.

    Raises
    ------
    SourceError
        If the socket cannot be opened.
    """
    app = create_app(model, name, target=target)
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # errors of the application are on standard error already
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    with _listen(host, port) as listener:
        if started is not None:
            place = f"[{host}]" if ":" in host else host
            started(f"http://{place}:{listener.getsockname()[1]}")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise SourceError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}; choose another port"
        ) from error
