"""Where rows come from, and how a pure function is summed over them, behind one `Table`.

Imports from: scales.
"""

from tensorlace.sources.arrays import ArraySource
from tensorlace.sources.blocks import BlockSource
from tensorlace.sources.files import CsvSource, NpySource, ParquetSource, open_source
from tensorlace.sources.source import RowSource
from tensorlace.sources.table import Chunk, Table

__all__ = [
    "ArraySource",
    "BlockSource",
    "Chunk",
    "CsvSource",
    "NpySource",
    "ParquetSource",
    "RowSource",
    "Table",
    "open_source",
]
