"""Tables and numbers in Markdown."""

import math
from collections.abc import Sequence

__all__ = ["goal_text", "markdown", "number", "seconds_text", "size_text", "times_text"]


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table.

    >>> print(markdown(["set", "NLL"], [["yacht", "-2.0"]]))
    | set | NLL |
    | --- | --- |
    | yacht | -2.0 |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(mean: float | None, error: float = math.nan, digits: int = 2) -> str:
    """``mean ± error``; a dash for nothing, and no error of a single value.

    >>> number(-0.514, 0.0321), number(0.5), number(None)
    ('-0.51 ± 0.03', '0.50', '–')
    """
    if mean is None or math.isnan(mean):
        return "–"
    if abs(mean) >= 1e4:
        return f"{mean:.0e}"
    text = f"{mean:.{digits}f}"
    return text if math.isnan(error) else f"{text} ± {error:.{digits}f}"


def seconds_text(seconds: float) -> str:
    """Seconds for readers.

    >>> seconds_text(0.01234), seconds_text(12.34), seconds_text(1234.5)
    ('12.3 ms', '12.3 s', '1,234 s')
    """
    if seconds < 0.1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def times_text(ratio: float) -> str:
    """A ratio for readers.

    >>> times_text(1.2345), times_text(123.45)
    ('1.23×', '123×')
    """
    return f"{ratio:.3g}×" if ratio < 100 else f"{ratio:.0f}×"


def size_text(N: int, D: int, I: int, R: int) -> str:
    """Rows, columns, basis functions and rank.

    >>> size_text(20_000, 8, 16, 4)
    '20,000 × 8, 16, 4'
    """
    return f"{N:,} × {D}, {I}, {R}"


def goal_text(met: bool, aim: str) -> str:
    """Whether what was aimed at is reached."""
    return f"The aim was {aim}: {'reached' if met else '**not reached**'}."
