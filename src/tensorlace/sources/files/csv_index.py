"""One pass over the bytes of a CSV file: where its rows are, without parsing them."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, final

import numpy as np
import numpy.typing as npt

from tensorlace.errors import SourceError

__all__ = ["CsvIndex", "index_csv"]

PART_BYTES = 4 << 20
LONGEST_ROW = 64 << 20
NEWLINE, RETURN, QUOTE = b'\n\r"'
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")


@final
@dataclass(frozen=True)
class CsvIndex:
    """Where the rows of a CSV file are.

    Attributes
    ----------
    columns : tuple of str
        The header.
    offsets : tuple of int
        Byte at which each part starts, and one at which the last has ended.
    rows : tuple of int
        Rows in each part; a part is whole rows in about 4 MiB.
    quoted_newlines : bool
        Whether a quoted field holds a line end.
    """

    columns: tuple[str, ...]
    offsets: tuple[int, ...]
    rows: tuple[int, ...]
    quoted_newlines: bool


def index_csv(path: str) -> CsvIndex:
    """Read the header and find the rows below it.

    Empty lines are no rows, and line ends inside quotes end no row.
    """
    try:
        with open(path, "rb") as file:
            return _index(path, file)
    except SourceError:
        raise
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from error


def _index(path: str, file: BinaryIO) -> CsvIndex:
    start = file.read(3)
    if start[:2] in UTF16:
        raise SourceError(f"{path}, header: the text is UTF-16: save it as UTF-8")
    offset = len(BOM) if start == BOM else 0
    file.seek(offset)
    columns: tuple[str, ...] = ()
    offsets, rows, quoted, before = [offset], [0], False, 0
    for part in _parts(path, file):
        ends, inside = _row_ends(part)
        quoted |= inside
        starts = np.concatenate([[0], ends[:-1] + 1])
        lengths = ends - starts
        filled = (lengths > 1) | ((lengths == 1) & (_bytes(part)[starts] != RETURN))
        numbers = before + np.cumsum(filled) - (1 if columns else 2)  # the header is row -1
        _refuse_bytes(path, part, ends, numbers)
        end, n_rows = offset + len(part), int(numbers[-1]) + 1 - before
        if columns:
            rows.append(n_rows)
            offsets.append(end)
        elif np.any(filled):
            header = int(np.argmax(filled))
            columns = _header(path, part[starts[header] : ends[header]])
            rows, offsets = [n_rows], [offset + int(ends[header]) + 1, end]
        if columns:
            before += n_rows
        offset = end
    if not columns:
        raise SourceError(f"{path}: no header and no rows")
    return CsvIndex(columns, tuple(offsets), tuple(rows), quoted)


def _parts(path: str, file: BinaryIO) -> Iterator[bytes]:
    """The file in runs of whole rows; the last one gets a line end if it lacks one."""
    rest, offset = b"", file.tell()
    while piece := file.read(PART_BYTES):
        rest += piece
        ends, _ = _row_ends(rest)
        if len(ends):
            cut = int(ends[-1]) + 1
            yield rest[:cut]
            rest, offset = rest[cut:], offset + cut
        elif len(rest) > LONGEST_ROW:
            raise SourceError(
                f"{path}: the row at byte {offset} does not end within {len(rest)} bytes: a quote "
                f"is left open, or this is no CSV file"
            )
    if not rest:
        return
    rest += b"\n"
    if not len(_row_ends(rest)[0]):
        raise SourceError(f"{path}: a quote is left open in the row at byte {offset}: close it")
    yield rest


def _row_ends(part: bytes) -> tuple[npt.NDArray[np.int64], bool]:
    """Positions of the line ends that end a row, and whether others are inside quotes."""
    text = _bytes(part)
    ends = np.flatnonzero(text == NEWLINE)
    if QUOTE not in part:
        return ends, False
    outside = np.searchsorted(np.flatnonzero(text == QUOTE), ends) % 2 == 0
    return ends[outside], not bool(np.all(outside))


def _refuse_bytes(
    path: str, part: bytes, ends: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]
) -> None:
    """No NUL and no carriage return alone; rows that end at ``ends`` have these ``numbers``."""
    at, what = part.find(b"\0"), "NUL byte: the text is UTF-16 or the file is damaged"
    if at < 0 and part.count(b"\r") != part.count(b"\r\n"):
        found = re.search(rb"\r(?!\n)", part)
        at = -1 if found is None else found.start()
        what = "carriage return without line feed: end lines with either \\n or \\r\\n"
    if at >= 0:
        row = int(numbers[np.searchsorted(ends, at)])
        raise SourceError(f"{path}, {'header' if row < 0 else f'row {row}'}: {what}")


def _header(path: str, line: bytes) -> tuple[str, ...]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path}, header: not UTF-8 ({error.reason}): save it so") from error
    columns = next(csv.reader([text.rstrip("\r")]))
    if len(columns) == 1:
        for mark, name in ((";", "semicolons"), ("\t", "tabs")):
            if mark in columns[0]:
                raise SourceError(
                    f"{path}, header: fields are separated by {name}: use commas between fields "
                    f"and points in numbers"
                )
    return tuple(columns)


def _bytes(part: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(part, np.uint8)
