"""Files that are written whole or not at all."""

import itertools
import os
import re
from pathlib import Path
from socket import gethostname
from zlib import crc32

__all__ = ["write_atomically"]

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
