"""When a fit has to end: a reading of the clock, or somebody who asks for what there is.

A fit asks between two steps, and between two blocks of rows within a step. Ctrl-C does not raise an
exception somewhere inside of it then: it makes a request, and the fit comes to an orderly end with
the best it has. A second one does what it always did. This is done by a handler of the signal, not
by catching ``KeyboardInterrupt``, because the exception would be raised wherever the main thread
happens to be, which may be inside a library that waits for threads or processes, and would leave
them at work.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from tempfile import gettempdir
from time import monotonic
from typing import Any, Self, final
from uuid import uuid4

from tensorlace.rows.memory import Block, Rows, Statistic

__all__ = [
    "NEVER",
    "Request",
    "Stop",
    "PassEndedError",
    "guarded",
    "part_of_more",
    "request_end",
    "stoppable",
]


class PassEndedError(Exception):
    """A pass over the rows was ended half-way, or a fit before it was worth having."""


@final
class Request:
    """A wish that a fit may end, also seen by the processes that fit for this one.

    They see it by an empty file, which is there from the wish on until `close`.
    """

    def __init__(self) -> None:
        self._made = False
        self._owner = os.getpid()
        self._file: Path | None = None
        with suppress(FileNotFoundError):  # no directory for such files: this process will do
            self._file = Path(gettempdir()) / f"tensorlace-end-{uuid4().hex}"

    @property
    def made(self) -> bool:
        """Whether somebody has asked."""
        if self._made or os.getpid() == self._owner or self._file is None:
            return self._made
        return self._file.exists()

    def make(self) -> None:
        """Ask."""
        self._made = True
        if self._file is not None:
            with suppress(OSError):
                self._file.touch(mode=0o600, exist_ok=False)

    def close(self) -> None:
        """Remove the file, if there is one."""
        if self._made and self._file is not None:
            with suppress(OSError):
                self._file.unlink()


@final
@dataclass(frozen=True)
class Stop:
    """When a fit has to end.

    Attributes
    ----------
    deadline : float
        Reading of `time.monotonic`, which all processes of a machine share.
    request : Request or None
    to_the_end : bool
        Whether a fit that is ended is worth nothing, so that its posterior need not be summed.

    Examples
    --------
    >>> NEVER.due, NEVER.by(0.0).due
    (False, True)
    """

    deadline: float = inf
    request: Request | None = None
    to_the_end: bool = False

    @property
    def due(self) -> bool:
        """Whether it has to end now."""
        return monotonic() > self.deadline or self.asked

    @property
    def asked(self) -> bool:
        """Whether somebody has asked for the end."""
        return self.request is not None and self.request.made

    def by(self, deadline: float) -> Self:
        """The same, or sooner."""
        return replace(self, deadline=min(self.deadline, deadline))


NEVER = Stop()
"""A fit takes as long as it takes."""

_UNDER_WAY: list[Request] = []
"""Requests that can be made, innermost fit last."""

_PARTS_OF_MORE: list[None] = []
"""One entry per block of `part_of_more`."""


def request_end() -> bool:
    """Ask the fits of this process for the best they have; False if none is asked anew.

    A handler of a signal may call it.
    """
    new = [request for request in _UNDER_WAY if not request.made]
    for request in new:
        request.make()
    return bool(new)


@contextmanager
def part_of_more() -> Iterator[None]:
    """Leave Ctrl-C alone: the best so far of one of many fits is not what anybody waits for."""
    _PARTS_OF_MORE.append(None)
    try:
        yield
    finally:
        _PARTS_OF_MORE.pop()


@contextmanager
def stoppable(*, on_interrupt: bool = True) -> Iterator[Request]:
    """Make a fit end with what it has when it is asked to, at the first Ctrl-C for example.

    The signal is taken only in the main thread, only where it would raise ``KeyboardInterrupt``,
    and only until it has come once or the fit is over.

    Parameters
    ----------
    on_interrupt : bool
        Whether Ctrl-C asks.
    """
    request = Request()
    before = None
    on_interrupt = on_interrupt and not _PARTS_OF_MORE
    if on_interrupt:
        _UNDER_WAY.append(request)
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:

            def first(*_signal: object) -> None:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                request_end()

            before = signal.signal(signal.SIGINT, first)
    try:
        yield request
    finally:
        if on_interrupt:
            _UNDER_WAY.remove(request)
        if before is not None:
            signal.signal(signal.SIGINT, before)
        request.close()


@final
class _GuardedKernel:
    """A kernel that ends a pass when it is due. On another machine it is the kernel itself."""

    def __init__(self, kernel: Callable[[Block], Statistic], stop: Stop) -> None:
        self._kernel, self._stop = kernel, stop

    def __call__(self, block: Block) -> Statistic:
        if self._stop.due:
            raise PassEndedError
        return self._kernel(block)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._kernel,)


def _itself(kernel: Callable[[Block], Statistic]) -> Callable[[Block], Statistic]:
    return kernel


@final
class _GuardedRows(Rows):
    """Rows whose passes end when they have to, by `PassEndedError`."""

    def __init__(self, rows: Rows, stop: Stop) -> None:
        self.bases, self.n_rows, self.total_weight = rows.bases, rows.n_rows, rows.total_weight
        self.memory_budget, self.keeps_blocks = rows.memory_budget, rows.keeps_blocks
        self.engine, self.likelihood = rows.engine, rows.likelihood
        self._rows, self._stop = rows, stop

    def reduce(self, kernel: Callable[[Block], Statistic], *, light: bool = False) -> Statistic:
        """As the rows below, as long as there is time."""
        return self._rows.reduce(_GuardedKernel(kernel, self._stop), light=light)

    def close(self) -> None:
        """The rows below have the threads."""


def guarded(rows: Rows, stop: Stop) -> Rows:
    """The same rows, whose passes raise `PassEndedError` when it is due."""
    return rows if stop == NEVER else _GuardedRows(rows, stop)
