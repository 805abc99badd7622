"""Work that is done side by side: by threads, or by processes where threads would take turns."""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Thread
from time import sleep
from typing import Any, final

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

__all__ = ["Workers"]

_LOOK_EVERY = 1.0
"""Seconds between two looks at whether anybody waits for the result."""


@final
@dataclass(frozen=True)
class Workers:
    """Who does it.

    Attributes
    ----------
    count : int
    processes : bool
        Rather than threads, which hold each other up at the interpreter lock where every call is
        short: two of them take longer for small fits than one. What goes to and fro is pickled.
        A backend of `joblib.parallel_config` comes first.

    Examples
    --------
    >>> from functools import partial
    >>> Workers(2)([partial(pow, 2, k) for k in range(4)])
    [1, 2, 4, 8]
    """

    count: int = 1
    processes: bool = False

    def __call__(
        self, jobs: Sequence[Callable[[], Any]], told: Callable[[int, Any], None] | None = None
    ) -> list[Any]:
        """Results of all jobs, in order; each has one thread for its linear algebra.

        ``told`` hears the number and the result of each job that is done, in this process.
        """
        how: dict[str, Any] = {"prefer": "threads", "require": "sharedmem"}
        if self.processes:
            how = {"prefer": "processes"}
        backend = get_active_backend(**how)[0]
        if getattr(backend, "supports_return_generator", False):
            how["return_as"] = "generator"
        if self.processes:
            how |= {"max_nbytes": None, "batch_size": 1}
            how |= {"initializer": _end_with, "initargs": (os.getpid(),)}
        results = []
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.count, **how)
            work = partial(_alone, os.getpid())
            for number, result in enumerate(run(delayed(work)(job) for job in jobs)):
                results.append(result)
                if told is not None:
                    told(number, result)
        return results


def _alone(parent: int, job: Callable[[], Any]) -> Any:
    """Do a job; in another process with as many threads as here and without warnings.

    They would be printed there, whatever the filters of this process say.
    """
    if os.getpid() == parent:
        return job()
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return job()


def _end_with(parent: int) -> None:
    """End this process soon after the one that it works for, which may be killed at any time.

    A process begins with this: one still waiting for its first job would outlive its parent by
    minutes.
    """

    def watch() -> None:
        while os.getppid() == parent:
            sleep(_LOOK_EVERY)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
