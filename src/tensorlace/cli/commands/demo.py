"""``tensorlace demo``: see the library at work."""

from tensorlace.errors import InputError

__all__ = ["demo"]


def demo() -> None:
    """Fit two data sets, print a table of scores and save a figure in out/.

    Example:

    tensorlace demo
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(
            "the demo draws with matplotlib: pip install 'tensorlace[plots]'"
        ) from error
    from tensorlace.cli.demo_run import main

    main()
