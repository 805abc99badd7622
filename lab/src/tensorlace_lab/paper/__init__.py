"""The paper's tables and figures, and ours: ``python -m tensorlace.experiments NAME ...``."""

from tensorlace_lab.paper.commands import NAMES, main

__all__ = ["NAMES", "main"]
