"""A table on disk by the extension of its files."""

import os
from collections.abc import Sequence

from tensorlace.errors import SourceError
from tensorlace.sources.csv import CSV_EXTENSIONS, CsvSource
from tensorlace.sources.files import Paths, find_files
from tensorlace.sources.parquet import PARQUET_EXTENSIONS, ParquetSource
from tensorlace.sources.source import RowSource

__all__ = ["open_source"]


def open_source(
    path: Paths,
    target: str,
    *,
    features: Sequence[str] | None = None,
    weight: str | None = None,
) -> RowSource:
    """Open a table on disk by the extension of its files: ``.csv``, ``.parquet`` or ``.pq``.

    Parameters
    ----------
    path : path or list of paths
        File, directory, glob pattern, or a list of these; all files of one kind.
    target : str
        Column of the target.
    features : sequence of str, optional
        Feature columns; by default all columns of the first file but target and weight.
    weight : str, optional
        Column of row weights.

    Raises
    ------
    SourceError
        If files are missing, damaged, of different kinds, or lack a column.
    """
    files = find_files(path, (*CSV_EXTENSIONS, *PARQUET_EXTENSIONS))
    kinds = sorted({os.path.splitext(file)[1].lower() for file in files})
    if set(kinds) <= set(PARQUET_EXTENSIONS):
        return ParquetSource(files, target, features, weight)
    if set(kinds) <= set(CSV_EXTENSIONS):
        return CsvSource(files, target, features, weight)
    raise SourceError(
        f"{files[0]}: files end in {', '.join(map(repr, kinds))}: all must be .csv, or all "
        f".parquet or .pq"
    )
