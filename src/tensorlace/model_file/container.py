"""Sealed files: safetensors whose last array is the SHA-256 digest of all bytes before it.

The layout is that of safetensors: the length of the header in 8 bytes, a JSON header, then the
arrays without a gap; the library of that name reads it. Strings are in ``__metadata__``.
"""

import hashlib
import json
import math
import struct
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tensorlace.errors import ModelFileError

__all__ = ["Arrays", "seal", "strict_json", "unseal"]

Arrays = dict[str, npt.NDArray[Any]]

_START = b'{"__metadata__":{"format":"tensorlace","version":"'
_DIGEST, _DIGEST_BYTES = "sha256", 32
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def seal(content: str, version: int, arrays: Arrays) -> bytes:
    """A whole file.

    Parameters
    ----------
    content : str
        What the arrays are.
    version : int
        Of the content.
    arrays : dict
        Numbers or booleans, C order, little end first.
    """
    metadata = {"format": "tensorlace", "version": str(version), "model": content}
    header: dict[str, Any] = {"__metadata__": metadata}
    # wide numbers first, so that all of them are aligned
    ordered = sorted(arrays.items(), key=lambda pair: -pair[1].dtype.itemsize)
    start = 0
    for key, array in (*ordered, (_DIGEST, np.zeros(_DIGEST_BYTES, dtype=np.uint8))):
        header[key] = {
            "dtype": _NAMES[array.dtype.str],
            "shape": array.shape,
            "data_offsets": [start, start + array.nbytes],
        }
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    parts = (array.tobytes() for _, array in ordered)
    body = b"".join((struct.pack("<Q", len(text)), text, *parts))
    return body + hashlib.sha256(body).digest()


def unseal(data: bytes, version: int, name: str) -> tuple[str, Arrays]:
    """Content and arrays of a whole file; the digest is looked at before anything else.

    Raises
    ------
    ModelFileError
        If the file, called ``name``, is anything but what `seal` writes for this version.
    """
    view = memoryview(data)  # its slices copy nothing
    body, digest = view[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        ours = data[8 : 8 + len(_START)] == _START[: max(len(data) - 8, 1)]
        what = "damaged or cut short: its digest does not match" if ours else _OTHER
        raise ModelFileError(f"{name} is {what}")
    if body[8 : 8 + len(_START)] != _START:
        raise ModelFileError(f"{name} is {_OTHER}")
    end = 8 + int.from_bytes(body[:8], "little")
    if end > len(body):
        raise ModelFileError(f"{name}: the header is longer than the file")
    header = strict_json(bytes(body[8:end]), name)
    metadata = header.pop("__metadata__")
    if not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFileError(f"{name}: the header has something else than text")
    if metadata["version"] != str(version):
        raise ModelFileError(
            f"{name} has format version {metadata['version'][:20]}, this tensorlace reads "
            f"{version}: use a tensorlace that reads that version"
        )
    if metadata.keys() != {"format", "version", "model"}:
        raise ModelFileError(f"{name}: the header has unknown or missing entries")
    return metadata["model"], _arrays(header, view[end:], name)


_OTHER = "not a tensorlace model file"


def _arrays(header: dict[str, Any], data: memoryview, name: str) -> Arrays:
    """Arrays; they must be all of ``data``, in order and without a gap."""
    out: Arrays = {}
    start = 0
    for key, entry in header.items():
        label = f"{name}: array {key[:80]!r}"
        if not (isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}):
            raise ModelFileError(f"{label} has unknown or missing entries")
        dtype, shape = _DTYPES.get(str(entry["dtype"])), entry["shape"]
        whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        if dtype is None or not whole or len(shape) > 8:
            raise ModelFileError(f"{label} has no valid dtype or shape")
        stop = start + math.prod(shape) * np.dtype(dtype).itemsize
        if entry["data_offsets"] != [start, stop] or stop > len(data):
            raise ModelFileError(f"{label} is not where its size says")
        flat: npt.NDArray[Any] = np.frombuffer(data[start:stop], dtype=dtype)
        if dtype == "|b1" and np.any(flat.view(np.uint8) > 1):
            raise ModelFileError(f"{label} has booleans that are neither true nor false")
        try:
            out[key] = flat.reshape(shape)
        except (ValueError, OverflowError) as error:
            raise ModelFileError(f"{label} has no valid dtype or shape") from error
        start = stop
    last = out.pop(_DIGEST, None)
    if last is None or start != len(data) or last.tobytes() != data[-_DIGEST_BYTES:]:
        raise ModelFileError(f"{name}: the arrays are not the rest of the file")
    return out


def strict_json(text: bytes, name: str) -> dict[str, Any]:
    """JSON object in which no key is there twice and all numbers are finite.

    >>> strict_json(b'{"a": [1, 2.5]}', "text")
    {'a': [1, 2.5]}
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            raise ValueError("a key is there twice")
        return out

    def finite(digits: str) -> float:
        value = float(digits)
        return value if math.isfinite(value) else refuse(digits)

    def refuse(digits: str) -> NoReturn:
        raise ValueError(f"{digits[:20]} is no finite number")

    try:
        out = json.loads(
            text.decode("utf-8", "surrogatepass"),
            object_pairs_hook=unique,
            parse_float=finite,
            parse_constant=refuse,
        )
    except RecursionError as error:
        raise ModelFileError(f"{name}: the header is nested too deeply") from error
    except ValueError as error:
        raise ModelFileError(f"{name}: the header cannot be read ({error})") from error
    if not isinstance(out, dict):
        raise ModelFileError(f"{name}: the header is no JSON object")
    return out
