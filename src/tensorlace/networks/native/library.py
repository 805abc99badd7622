"""The compiled code: built once per machine by the C compiler found there.

It is portable C with vector extensions (GCC, Clang), compiled on first use for the very processor
it runs on and kept in the user's cache directory.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from tensorlace.errors import CompilerError

__all__ = ["build", "library"]

SOURCES = tuple(Path(__file__).with_name(name) for name in ("core.c", "network.c"))
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared")


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL:
    """Load it, built first if need be."""
    path = build(_cache_directory())
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise CompilerError(
            f"{path}: the compiled engine cannot be loaded ({error}): delete the file and try "
            f"again, or use engine='numpy'"
        ) from error


def build(directory: Path) -> Path:
    """Compile for this processor into ``directory``, unless that was done before.

    Raises
    ------
    CompilerError
        If there is no compiler or it fails.
    """
    command = _compiler()
    texts = [source.read_text() for source in SOURCES]
    key = "\0".join([*texts, *command, *FLAGS, platform.machine(), _processor()])
    path = directory / f"core-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    if path.exists():
        return path
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            built = Path(scratch) / "core.so"
            run = subprocess.run(
                [*command, *FLAGS, str(SOURCES[0]), "-o", str(built)],
                capture_output=True,
                text=True,
                check=False,
            )
            if run.returncode:
                said = run.stderr.strip().splitlines()
                raise CompilerError(
                    f"{shlex.join(command)} could not build the compiled engine "
                    f"({said[0] if said else f'exit {run.returncode}'}): use engine='numpy' or "
                    f"name another compiler in CC"
                )
            os.replace(built, path)  # another process may be doing the same
    except OSError as error:
        raise CompilerError(
            f"{directory}: the compiled engine cannot be kept here ({error.strerror}): name "
            f"another directory in XDG_CACHE_HOME, or use engine='numpy'"
        ) from error
    return path


def _compiler() -> list[str]:
    wanted = shlex.split(os.environ.get("CC", ""))
    for command in [wanted] if wanted else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    raise CompilerError(
        "engine='compiled' needs a C compiler and none was found (CC, cc, gcc, clang): install one "
        "or use engine='numpy'"
    )


def _cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensorlace"


def _processor() -> str:
    """What distinguishes processors that may share a home directory."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return "".join(line for line in lines[:64] if line.startswith(("model name", "flags")))
    except OSError:
        return platform.processor()
