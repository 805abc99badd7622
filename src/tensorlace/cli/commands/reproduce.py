"""``tensorlace reproduce``: the tables and figures of the paper."""

import typer

__all__ = ["reproduce"]


def reproduce(context: typer.Context) -> None:
    """Repeat an experiment of the paper: cubic, linearization, hessians, uci and others.

    Examples: `tensorlace reproduce cubic`, `tensorlace reproduce uci --quick --data DIR`; all
    options with `tensorlace reproduce --help`.
    """
    from tensorlace_lab.paper.commands import main

    try:
        code = main(context.args or ["--help"])
    except SystemExit as stop:  # argparse has said what there is to say
        code = int(stop.code or 0)
    if code:
        raise typer.Exit(code)
