"""What Ctrl-C means to a command: the end, or for a fit first the best so far."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, final

from tensorlace.rows.stop import request_end

__all__ = ["Interrupts", "interrupted", "keeps_best"]


def interrupted(*_signal: object) -> NoReturn:
    """End at once, also while threads are at work: files are written whole or not at all."""
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    os.write(2, f"{show_cursor}\ninterrupted\n".encode())
    os._exit(130)


@final
class Interrupts:
    """Whether a fit was asked for the best it had."""

    def __init__(self) -> None:
        self.came = False

    def __call__(self, *_signal: object) -> None:
        """Ask, once; end if there is no fit to ask, or it was asked already."""
        if self.came or not request_end():
            interrupted()
        self.came = True
        os.write(2, b"\nending with the best so far; Ctrl-C again to end at once\n")


@contextmanager
def keeps_best() -> Iterator[Interrupts]:
    """Have the first Ctrl-C end a fit with the best it has."""
    handler = Interrupts()
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield handler
    except KeyboardInterrupt:  # there was nothing yet
        interrupted()
    finally:
        signal.signal(signal.SIGINT, before)
