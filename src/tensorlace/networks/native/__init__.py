"""The arithmetic of a block and of a whole network in C.

Imports from: columns.
"""

from tensorlace.networks.native.engine import CompiledEngine
from tensorlace.networks.native.library import build

__all__ = ["CompiledEngine", "build"]
