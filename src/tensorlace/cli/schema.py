"""``tensorlace schema``: what ``--json`` prints."""

from pathlib import Path
from typing import Annotated

import typer

from tensorlace.errors import InputError

__all__ = ["schema", "schema_of"]

_FOLDER = Path(__file__).parent / "schemas"


def schema(
    command: Annotated[str, typer.Argument(help="fit, predict, evaluate, compare or inspect.")],
) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Example:

    tensorlace schema evaluate
    """
    print(schema_of(command))


def schema_of(command: str) -> str:
    """JSON Schema as text.

    >>> import json
    >>> json.loads(schema_of("fit"))["title"]
    'tensorlace fit --json'
    """
    known = sorted(path.stem for path in _FOLDER.glob("*.json"))
    if command not in known:
        raise InputError(f"no schema of {command!r}: choose from {', '.join(known)}")
    return (_FOLDER / f"{command}.json").read_text().rstrip()
