"""Kinds of files by their extension: the one way from a path to rows or to a frame."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorlace._registry import Registry
from tensorlace.errors import SourceError
from tensorlace.sources.files.csv import CsvSource
from tensorlace.sources.files.frames import with_dates
from tensorlace.sources.files.parquet import ParquetSource
from tensorlace.sources.files.paths import Paths, find_files
from tensorlace.sources.files.segments import SegmentedSource
from tensorlace.sources.source import RowSource

__all__ = ["FORMATS", "open_source", "read_frame"]

FORMATS: Registry[type[SegmentedSource]] = Registry(
    "file extension", {".csv": CsvSource, ".parquet": ParquetSource, ".pq": ParquetSource}
)
"""Sources by the extension of their files, lower case."""


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
    files = find_files(path, tuple(FORMATS))
    found = sorted({os.path.splitext(file)[1].lower() for file in files})
    kinds = {FORMATS.get(extension) for extension in found}
    kind = kinds.pop()
    if kind is None or kinds:
        one_kind = ", or all ".join(" or ".join(extensions) for extensions in _by_class())
        raise SourceError(
            f"{files[0]}: files end in {', '.join(map(repr, found))}: all must be {one_kind}"
        )
    return kind(files, target, features, weight)


def read_frame(path: Path, *, as_written: bool = False, text: Sequence[str] = ()) -> Any:
    """Data frame with all rows of a file, whatever their columns hold; ``-`` is standard input.

    A file with no extension that is known is taken for CSV.

    Parameters
    ----------
    path : Path
    as_written : bool
        Leave all cells of a CSV file as the text they are.
    text : sequence of str
        Columns that are text also if they look like numbers.

    Raises
    ------
    SourceError
        If the file cannot be read or has no rows.
    """
    kind = FORMATS.get(path.suffix.lower(), CsvSource)
    try:
        frame = kind.frame(path, as_written=as_written, text=text)
    except (OSError, ValueError, ImportError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise SourceError(f"{path} cannot be read: {reason}") from error
    if len(frame) == 0:
        raise SourceError(f"{path} has no rows")
    frame.columns = [str(name) for name in frame.columns]
    return frame if as_written else with_dates(frame, text)


def _by_class() -> list[list[str]]:
    """Extensions that stand for the same kind of file, together."""
    groups: dict[type[SegmentedSource], list[str]] = {}
    for extension, kind in FORMATS.items():
        groups.setdefault(kind, []).append(extension)
    return list(groups.values())
