"""Axes to draw on, and colours that everybody can tell apart."""

from typing import Any

from tensorlace.errors import InputError

__all__ = ["COLORS", "GREY", "RED", "axes", "choice", "finish"]

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
"""Six of the colours of Okabe and Ito."""

RED = "#D55E00"
GREY = "0.45"


def axes(ax: Any, figsize: tuple[float, float] = (4.8, 4.4)) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'tensorlace[plots]'") from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def finish(ax: Any, title: str | None = None, *, legend: bool = True, **legend_options: Any) -> Any:
    """Light grid, no box, a legend without a frame."""
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if title is not None:
        ax.set_title(title, fontsize="medium")
    if legend:
        ax.legend(**{"frameon": False, "fontsize": "small", **legend_options})
    return ax


def choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """The value if it is one of those allowed."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r}: choose one of {', '.join(map(repr, allowed))}")
    return value
