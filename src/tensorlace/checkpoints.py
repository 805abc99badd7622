"""Checkpoints of a running fit: plain arrays in one file, replaced atomically."""

import io
import itertools
import os
import re
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from socket import gethostname
from typing import Any, Self, final
from zlib import crc32

import numpy as np

from tensorlace.errors import SourceError
from tensorlace.networks import Cores

__all__ = ["Checkpointer", "write_atomically"]

_NUMBERS = itertools.count()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data``: whoever reads it finds the old file or the new one, whole.

    What a process that was killed meanwhile left beside the file is removed by the next one.
    """
    host = f"{crc32(gethostname().encode()):08x}"  # directories may be shared
    _remove_leftovers(path, host)
    temporary = path.with_name(f".{path.name}.{host}-{os.getpid()}-{next(_NUMBERS)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _remove_leftovers(path: Path, host: str) -> None:
    """Remove temporary files of processes of this machine that are no more."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.{host}-(\d+)-\d+\.tmp")
    for name in os.listdir(path.parent):
        match = pattern.fullmatch(name)
        if match and not _alive(int(match[1])):
            path.with_name(name).unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


@final
@dataclass(frozen=True)
class Checkpointer:
    """Saves and restores the state of one member's fit.

    Attributes
    ----------
    path : Path
    key : str
        Digest of what the fit is: table, scale of its target, settings, starting cores. A
        checkpoint of another fit is refused.
    """

    path: Path
    key: str

    @classmethod
    def of(
        cls, path: Path | None, member: int, cores: Cores, identity: tuple[object, ...]
    ) -> Self | None:
        """Checkpointer of a member that starts at ``cores``, or None if none is wanted.

        ``identity`` is whatever else makes the fit what it is, by its ``repr``.
        """
        if path is None:
            return None
        digest = sha256(repr((identity, [V.shape for V in cores])).encode())
        for V in cores:
            digest.update(V.tobytes())
        return cls(path.with_name(f"{path.name}.{member}.npz"), digest.hexdigest())

    def save(self, arrays: dict[str, Any]) -> None:
        """Write the state."""
        buffer = io.BytesIO()
        np.savez(buffer, key=np.array(self.key), **arrays)
        write_atomically(self.path, buffer.getvalue())

    def load(self) -> dict[str, Any] | None:
        """State saved before, or None."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise SourceError(
                f"checkpoint {self.path} cannot be read ({error}): remove it to start anew"
            ) from error
        if str(state.pop("key", "")) != self.key:
            raise SourceError(
                f"checkpoint {self.path} belongs to another table, model or random_state: "
                f"remove it or give another path"
            )
        return state
