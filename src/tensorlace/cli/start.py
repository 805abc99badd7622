"""The start of the command line, which says what to install for it."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        import pandas  # noqa: F401
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(
            f"error: the command line needs {error.name}: pip install 'tensorlace[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(1) from None
    from tensorlace.cli.app import run

    run()
