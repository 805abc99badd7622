"""Files on disk: finding them, knowing them again, and blaming them."""

import difflib
import glob
import hashlib
import importlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from tensorlace.errors import InputError, SourceError

__all__ = [
    "File",
    "Paths",
    "PathLike",
    "feature_names",
    "find_columns",
    "find_files",
    "first_line",
    "pyarrow_module",
]

PathLike = str | os.PathLike[str]
Paths = PathLike | Sequence[PathLike]
"""A file, a directory, a glob pattern, or a list of these."""

DIGEST_BYTES = 64 << 10
"""Bytes at either end of a file that its digest is made of."""


@final
@dataclass(frozen=True)
class File:
    """A file as it was when it was opened: path, size, time of change, digest of both ends."""

    path: str
    size: int
    mtime_ns: int
    digest: str

    @classmethod
    def open(cls, path: PathLike) -> Self:
        """Look at the file at ``path``."""
        name = os.path.abspath(path)
        try:
            with open(name, "rb") as file:
                status = os.fstat(file.fileno())
                ends = hashlib.sha256(file.read(DIGEST_BYTES))
                file.seek(max(0, status.st_size - DIGEST_BYTES))
                ends.update(file.read(DIGEST_BYTES))
        except OSError as error:
            raise SourceError(f"{name}: cannot be read: {error.strerror}") from error
        return cls(name, status.st_size, status.st_mtime_ns, ends.hexdigest())

    def verify(self) -> None:
        """Raise `SourceError` if the file is not the one that was opened."""
        self._compare(File.open(self.path))

    def verify_status(self) -> None:
        """As `verify`, by size and time alone: cheap enough for every read."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be read: {error.strerror}") from error
        self._compare(File(self.path, status.st_size, status.st_mtime_ns, self.digest))

    def _compare(self, now: "File") -> None:
        if now == self:
            return
        what = (
            f"size {self.size} became {now.size} bytes"
            if now.size != self.size
            else "content differs"
            if now.digest != self.digest
            else "time of change differs"
        )
        raise SourceError(f"{self.path}: changed since it was opened ({what}): open it again")


def find_files(paths: Paths, extensions: Sequence[str]) -> list[str]:
    """Absolute paths of all files meant by ``paths``, each once, sorted by name.

    A directory stands for all files below it with one of the ``extensions``, except those whose
    names start with a dot or an underscore (marks left by other programs).
    """
    each = [paths] if isinstance(paths, str | os.PathLike) else paths
    found: set[str] = set()
    for path in each:
        found.update(os.path.abspath(p) for p in _expand(os.fspath(path), extensions))
    if not found:
        raise SourceError("the list of files is empty: no rows")
    return sorted(found)


def _expand(path: str, extensions: Sequence[str]) -> Iterable[str]:
    if os.path.isdir(path):
        files = [
            str(file)
            for file in Path(path).rglob("*")
            if file.suffix.lower() in extensions
            and not any(part[0] in "._" for part in file.relative_to(path).parts)
            and file.is_file()
        ]
        if not files:
            raise SourceError(f"{path}: directory without {' or '.join(extensions)} files")
        return files
    if glob.has_magic(path) and not os.path.exists(path):
        files = [file for file in glob.glob(path, recursive=True) if os.path.isfile(file)]
        if not files:
            raise SourceError(f"{path}: no file matches this pattern")
        return files
    return [path]


def feature_names(
    present: Sequence[str], target: str, features: Sequence[str] | None, weight: str | None
) -> tuple[str, ...]:
    """The features asked for; by default all columns but target and weight."""
    if isinstance(features, str):
        raise InputError(f"features is the text {features!r}: give a list of column names")
    names = tuple(
        [name for name in present if name not in (target, weight)] if features is None else features
    )
    if not names:
        raise InputError("no feature columns: name at least one")
    chosen = [*names, target] if weight is None else [*names, target, weight]
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice:
        raise InputError(f"column {twice[0]!r} is used twice among features, target and weight")
    return names


def find_columns(path: str, present: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Positions of the ``wanted`` columns in a file, or `SourceError` with a likely name."""
    found = []
    for name in wanted:
        count = present.count(name)
        if count == 0:
            near = difflib.get_close_matches(name, present, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {_listed(present)}"
            raise SourceError(f"{path}: no column {name!r}: {hint}")
        if count > 1:
            raise SourceError(f"{path}: {count} columns are named {name!r}: rename them")
        found.append(present.index(name))
    return found


def _listed(names: Sequence[str], most: int = 8) -> str:
    text = ", ".join(repr(name) for name in names[:most])
    return text + (f" and {len(names) - most} more" if len(names) > most else "")


def first_line(error: BaseException) -> str:
    """The first line of a foreign message, not too long."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:200]


def pyarrow_module(name: str) -> Any:
    """Import a module of pyarrow when it is needed, and not before."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SourceError(
            "reading CSV and Parquet files needs pyarrow: pip install tensorlace[disk]"
        ) from error
