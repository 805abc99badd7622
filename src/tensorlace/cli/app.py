"""All commands, and how a command ends: its exit code and, at most, one line on standard error.

0 all went well; 1 something about the data, the model or a file; 2 the command line itself;
130 interrupted, after which a fit has written the best that it had; 141 nobody reads the output
any more.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

import typer

from tensorlace.cli import schema
from tensorlace.cli.commands import (
    compare,
    demo,
    evaluate,
    export,
    fit,
    inspect,
    predict,
    report,
    reproduce,
    serve,
)
from tensorlace.cli.interrupts import interrupted

__all__ = ["app", "run"]

_EPILOG = "Exit codes: 0 fine, 1 data, model or file, 2 usage, 130 interrupted, 141 broken pipe."

app = typer.Typer(
    name="tensorlace",
    help="Regression on tables that knows how sure it is.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with errors as one line."""

    @wraps(command)
    def run_it(*args: Any, **kwargs: Any) -> None:
        ended = None
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("default")
                try:
                    command(*args, **kwargs)
                except typer.Exit as end:
                    ended = end
                sys.stdout.flush()
            for text in dict.fromkeys(str(w.message) for w in caught if _for_users(w)):
                print(f"warning: {_line(text)}", file=sys.stderr)
        except BrokenPipeError:
            _nobody_reads()
        except Exception as error:
            if hasattr(error, "format_message"):  # a usage error
                raise
            if os.environ.get("TENSORLACE_TRACEBACK"):
                raise
            print(f"error: {_line(_text(error))}", file=sys.stderr)
            raise typer.Exit(1) from None
        if ended is not None:
            raise ended

    return run_it


def _for_users(warning: warnings.WarningMessage) -> bool:
    return issubclass(warning.category, UserWarning)


def _line(text: str) -> str:
    return " ".join(text.split())


def _text(error: Exception) -> str:
    """Errors on purpose speak for themselves; of others the type tells most."""
    if isinstance(error, ValueError | OSError | ImportError):
        return str(error)
    return f"{type(error).__name__}: {error} (TENSORLACE_TRACEBACK=1 shows where)"


def _nobody_reads() -> NoReturn:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    os._exit(141)


_COMMANDS: dict[str, Callable[..., None]] = {
    "fit": fit.fit,
    "predict": predict.predict,
    "evaluate": evaluate.evaluate,
    "compare": compare.compare,
    "inspect": inspect.inspect,
    "report": report.report,
    "export": export.export,
    "serve": serve.serve,
    "schema": schema.schema,
    "demo": demo.demo,
    "reproduce": reproduce.reproduce,
}

for _name, _command in _COMMANDS.items():
    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app.command(
        _name,
        no_args_is_help=_name not in ("demo", "reproduce"),
        context_settings=settings if _name == "reproduce" else None,
    )(_guarded(_command))


def run() -> None:
    """Run the command that the arguments of the process name."""
    signal.signal(signal.SIGINT, interrupted)
    try:
        code = app(prog_name="tensorlace", standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "tensorlace"
        message = _line(error.format_message()) or "a command is missing"
        print(f"error: {message.rstrip('.')} (see {path} --help)", file=sys.stderr)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)
