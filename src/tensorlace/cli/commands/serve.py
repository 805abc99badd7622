"""``tensorlace serve``: a model behind HTTP."""

import ipaddress
import os
import signal
import sys
from typing import Annotated

import typer

from tensorlace.cli.options import Model
from tensorlace.cli.output import note
from tensorlace.model_file.files import describe, load

__all__ = ["serve"]


def serve(
    model: Model,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    name: Annotated[
        str | None, typer.Option(help="Of the model; default: that of the file.")
    ] = None,
) -> None:
    """Answer requests for predictions over HTTP until stopped.

    `GET /` shows how to call it, `POST /predict` takes rows, and `/v2/...` is the Open Inference
    Protocol. By default only this machine can reach it; it asks nobody who they are. Needs
    `tensorlace[serve]`.

    Examples
    --------
    tensorlace serve houses.tlace

    tensorlace serve houses.tlace --host 0.0.0.0 --port 80 --name houses
    """
    from tensorlace.serve import serve as answer

    machine, target = load(model), describe(model)["notes"].get("target")

    def started(address: str) -> None:
        note(f"serving {called!r} on {address} (Ctrl+C stops it)")
        if not _loopback(host):
            note("whoever can reach this address can use the model: it asks for no password")

    called = name or model.stem
    # uvicorn hands the signal on when it has stopped; nothing is left to do then
    signal.signal(signal.SIGTERM, lambda *_: None)
    target = None if target is None else str(target)
    answer(machine, called, host=host, port=port, target=target, started=started)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a prediction that nobody waits for may still be at work


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
