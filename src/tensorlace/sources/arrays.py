"""Rows in memory."""

from collections.abc import Sequence
from typing import Any, final

from tensorlace.errors import SourceError
from tensorlace.sources.raw_rows import RawRows, as_rows, column_names
from tensorlace.sources.source import RowSource

__all__ = ["ArraySource"]


@final
class ArraySource(RowSource):
    """A table in memory; chunks are views of it.

    Parameters
    ----------
    X : (N, D) array or data frame
        Features. Copied only if they are not float64 in C order.
    y : (N,) array
        Target.
    weight : (N,) array, optional
        Row weights.
    names : sequence of str, optional
        Names of the D columns; by default those of the data frame, or ``column 0``, ...
    missing : bool
        Take a NaN in ``X`` as a missing value instead of refusing it.

    Examples
    --------
    >>> source = ArraySource([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [0.0, 1.0, 2.0])
    >>> source.read(1, 9).X
    array([[3., 4.],
           [5., 6.]])
    """

    in_memory = True

    def __init__(
        self,
        X: Any,
        y: Any,
        weight: Any = None,
        names: Sequence[str] | None = None,
        *,
        missing: bool = False,
    ) -> None:
        self._table = as_rows(X, y, weight)
        self.n_rows, n_columns = self._table[0].shape
        if self.n_rows == 0:
            raise SourceError("arrays in memory: no rows")
        if names is None and hasattr(X, "columns"):
            names = [str(name) for name in X.columns]
        self.names = column_names(names, n_columns)
        self.weight = None if weight is None else "weight"
        self.missing = missing

    def verify(self) -> None:
        """Nothing to do: there are no files."""

    def locate(self, row: int) -> str:
        """Where row ``row`` is, in words."""
        return f"arrays in memory, row {row}"

    def _rows(self, start: int, stop: int) -> RawRows:
        X, y, weight = self._table
        return X[start:stop], y[start:stop], None if weight is None else weight[start:stop]
