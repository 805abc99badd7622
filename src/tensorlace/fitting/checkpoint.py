"""Checkpoints of a running fit: plain arrays in one file, replaced atomically."""

import io
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from tensorlace._atomic import write_atomically
from tensorlace.errors import SourceError
from tensorlace.networks.network import Cores

__all__ = ["Checkpointer"]


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
