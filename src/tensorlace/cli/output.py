"""What commands say: tables and words for people, JSON for machines, bars on standard error."""

import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

__all__ = ["bar", "count", "note", "number", "print_json", "say", "steps", "table"]


class _Output(Console):
    """Standard output; when nobody reads it, that is for the command to tell by its exit code."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False)

    def on_broken_pipe(self) -> None:
        """Leave alone what rich would make exit code 1 of."""
        raise BrokenPipeError


def say(lines: Iterable[str]) -> None:
    """Print words on standard output."""
    console = _Output()
    for line in lines:
        console.print(line)


def note(line: str) -> None:
    """Print a remark on standard error."""
    print(line, file=sys.stderr)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table on standard output; numbers to the right."""
    out = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    cells = [list(row) for row in rows]
    for k, name in enumerate(header):
        numbers = all(row[k][:1] in "0123456789-" for row in cells)
        out.add_column(name, justify="right" if numbers and k else "left", overflow="fold")
    for row in cells:
        out.add_row(*row)
    _Output().print(out)


def count(n: int, what: str) -> str:
    """Number and noun.

    >>> count(1, "row"), count(2, "row")
    ('1 row', '2 rows')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def number(x: float | None) -> str:
    """Four digits, or a dash.

    >>> number(1234.567), number(0.00012345), number(float("nan"))
    ('1235', '0.0001234', '-')
    """
    if x is None or math.isnan(x):
        return "-"
    return f"{x:.4g}" if abs(x) < 1e4 or abs(x) >= 1e7 else f"{x:.0f}"


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON document; what is no finite number is null."""
    print(json.dumps(_plain(content), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


class _Steps(io.TextIOBase):
    """Takes the lines that a verbose fit prints and moves a bar.

    A search says which part of its budget is spent, then which members are fitted to all rows; a
    single fit says its steps.
    """

    _LINE = re.compile(
        r"\[tensorlace\] (?:fit \d+, (?P<percent>\d+)%|member (?P<member>\d+)/(?P<members>\d+):"
        r"|.*?\bstep (?P<step>\d+)/(?P<steps>\d+))"
    )

    def __init__(self, progress: Progress, task: Any, title: str) -> None:
        self._progress, self._task, self._title = progress, task, title

    def write(self, text: str) -> int:
        for line in self._LINE.finditer(text):
            if line["percent"]:
                what, done, total = "trying models", line["percent"], "100"
            elif line["member"]:
                what, done, total = "fitting the best", line["member"], line["members"]
            else:
                what, done, total = "fitting", line["step"], line["steps"]
            self._progress.update(
                self._task,
                description=f"{self._title}{what}",
                total=float(total),
                completed=float(done),
            )
        return len(text)


@contextmanager
def bar(title: str = "") -> Iterator[None]:
    """Show how far a verbose fit is, if standard error is a terminal.

    Parameters
    ----------
    title : str
        Put before what is being done.
    """
    console = Console(file=sys.stderr)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(f"{title}fitting", total=None)
        # rich takes hold of standard error too: what a fit prints there must not reach it
        with redirect_stderr(_Steps(progress, task, title)):
            yield


@contextmanager
def steps(title: str) -> Iterator[Callable[[str], None]]:
    """Give a function that shows what is being done, if standard error is a terminal."""
    console = Console(file=sys.stderr)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task(title, total=None)
        yield lambda what: progress.update(task, description=f"{title}: {what}")
