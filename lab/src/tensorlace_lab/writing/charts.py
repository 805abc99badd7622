"""What the figures have in common (matplotlib, an extra of tensorlace)."""

from pathlib import Path
from typing import Any

__all__ = ["figure", "save", "subplots"]

STYLE: Any = {
    "svg.hashsalt": "tensorlace",  # the same file for the same numbers
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def figure(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """A figure with panels (n_rows, n_columns) of the usual size."""
    size = (3.0 * n_columns + 0.4, 2.6 * n_rows + 0.2)
    return subplots(n_rows, n_columns, figsize=size)


def subplots(n_rows: int, n_columns: int, figsize: tuple[float, float]) -> tuple[Any, Any]:
    """A figure with panels (n_rows, n_columns) of a size in inches."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
    return plt.subplots(n_rows, n_columns, figsize=figsize, squeeze=False, layout="constrained")


def save(drawn: Any, path: Path) -> Path:
    """Write a figure as SVG without date or trailing spaces, and close it."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, metadata={"Date": None})
    plt.close(drawn)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n")
    return path
