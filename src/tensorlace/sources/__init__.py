"""Where raw rows come from, and how a pure function is summed over them.

Imports from: no other room.
"""

from tensorlace.sources.arrays import ArraySource
from tensorlace.sources.blocks import BlockSource
from tensorlace.sources.csv import CsvSource
from tensorlace.sources.formats import open_source
from tensorlace.sources.npy import NpySource
from tensorlace.sources.parquet import ParquetSource
from tensorlace.sources.source import Chunk, RowSource

__all__ = [
    "ArraySource",
    "BlockSource",
    "Chunk",
    "CsvSource",
    "NpySource",
    "ParquetSource",
    "RowSource",
    "open_source",
]
