"""Rows in ``.npy`` files, mapped into memory only while they are read."""

import os
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.errors import SourceError
from tensorlace.sources.files.paths import File, PathLike, first_line
from tensorlace.sources.raw_rows import RawRows, column_names
from tensorlace.sources.source import RowSource

__all__ = ["NpySource"]


@final
class NpySource(RowSource):
    """A table saved by `numpy.save`, float32 or float64.

    Parameters
    ----------
    X_path : path
        Features, (N, D).
    y_path : path
        Target, (N,) or (N, 1).
    weight_path : path, optional
        Row weights, (N,) or (N, 1).
    names : sequence of str, optional
        Names of the D columns.
    """

    def __init__(
        self,
        X_path: PathLike,
        y_path: PathLike,
        weight_path: PathLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        paths = [X_path, y_path] if weight_path is None else [X_path, y_path, weight_path]
        self.files = tuple(File.open(path) for path in paths)
        self.target, *weight = (os.path.basename(file.path) for file in self.files[1:])
        self.weight = weight[0] if weight else None
        X, *vectors = (_mapped(file) for file in self.files)
        if X.ndim != 2 or X.shape[1] == 0:
            raise SourceError(f"{self.files[0].path}: shape {X.shape} is no table (N, D)")
        self.n_rows, n_columns = X.shape
        for file, vector in zip(self.files[1:], vectors, strict=True):
            if vector.shape not in ((self.n_rows,), (self.n_rows, 1)):
                raise SourceError(
                    f"{file.path}: shape {vector.shape} does not fit the {self.n_rows} rows of "
                    f"{self.files[0].path}"
                )
        if self.n_rows == 0:
            raise SourceError(f"{self.files[0].path}: no rows")
        self.names = column_names(names, n_columns)

    def verify(self) -> None:
        """Raise `SourceError` if a file changed since the source was opened."""
        for file in self.files:
            file.verify()

    def locate(self, row: int) -> str:
        """Where row ``row`` is, in words."""
        return f"{self.files[0].path}, row {row}"

    def _rows(self, start: int, stop: int) -> RawRows:
        parts: list[Array] = []
        for file in self.files:
            file.verify_status()
            parts.append(np.array(_mapped(file)[start:stop], dtype=np.float64, order="C"))
        n = stop - start
        return parts[0], parts[1].reshape(n), parts[2].reshape(n) if self.weight else None


def _mapped(file: File) -> npt.NDArray[Any]:
    try:
        array = np.lib.format.open_memmap(file.path, mode="r")
    except (ValueError, OSError, EOFError) as error:
        raise SourceError(
            f"{file.path}: not a whole .npy file ({first_line(error)}): save it again"
        ) from error
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise SourceError(
            f"{file.path}: type {array.dtype} is neither float32 nor float64: convert it"
        )
    return array
