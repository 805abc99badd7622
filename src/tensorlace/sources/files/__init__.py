"""Tables in files: numbers read part by part, or a whole frame with columns of any kind.

Imports from: no other room.
"""

from tensorlace.sources.files.csv import CsvSource
from tensorlace.sources.files.formats import FORMATS, open_source, read_frame
from tensorlace.sources.files.npy import NpySource
from tensorlace.sources.files.parquet import ParquetSource

__all__ = ["FORMATS", "CsvSource", "NpySource", "ParquetSource", "open_source", "read_frame"]
