"""``tensorlace reproduce``: the tables and figures of the paper."""

import typer

from tensorlace.cli.rivals import from_laboratory

__all__ = ["reproduce"]


def reproduce(context: typer.Context) -> None:
    """Repeat an experiment of the paper: cubic, linearization, hessians, uci and others.

    It needs the laboratory, `pip install 'tensorlace[lab]'`.

    Examples: `tensorlace reproduce cubic`, `tensorlace reproduce uci --quick --data DIR`; all
    options with `tensorlace reproduce --help`.
    """
    main = from_laboratory("__main__").main
    try:
        code = main(context.args or ["--help"])
    except SystemExit as stop:  # argparse has said what there is to say
        code = int(stop.code or 0)
    if code:
        raise typer.Exit(code)
