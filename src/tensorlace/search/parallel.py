"""Jobs side by side: on threads, or in processes where threads would wait for each other."""

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Thread
from time import sleep
from typing import Any, TypeVar, final

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from tensorlace.search.settings import WorkerSettings

__all__ = ["Workers"]

T = TypeVar("T")


@final
@dataclass(frozen=True)
class Workers:
    """A number of threads or processes that map jobs.

    Attributes
    ----------
    count : int
    processes : bool
        Rather than threads, which hold each other up at the interpreter lock where every call is
        short: two of them take longer for small fits than one. Jobs and results are pickled.
        A backend of `joblib.parallel_config` comes first.
    settings : WorkerSettings

    Examples
    --------
    >>> from functools import partial
    >>> list(Workers(2).map([partial(pow, 2, k) for k in range(4)]))
    [1, 2, 4, 8]
    """

    count: int = 1
    processes: bool = False
    settings: WorkerSettings = WorkerSettings()

    def map(self, jobs: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Results of all jobs, in order, each as soon as it and all before it are there.

        A job has one thread for its linear algebra.
        """
        how: dict[str, Any] = {"prefer": "threads", "require": "sharedmem"}
        if self.processes:
            how = {"prefer": "processes"}
        backend = get_active_backend(**how)[0]
        if getattr(backend, "supports_return_generator", False):
            how["return_as"] = "generator"
        if self.processes:
            how |= {"max_nbytes": None, "batch_size": 1}
            how |= {"initializer": _end_with}
            how |= {"initargs": (os.getpid(), self.settings.look_every)}
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.count, **how)
            work = partial(_alone, os.getpid())
            yield from run(delayed(work)(job) for job in jobs)


def _alone(parent: int, job: Callable[[], T]) -> T:
    """Do a job; in another process with as many threads as here and without warnings.

    They would be printed there, whatever the filters of this process say.
    """
    if os.getpid() == parent:
        return job()
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return job()


def _end_with(parent: int, look_every: float) -> None:
    """End this process soon after the one that it works for, which may be killed at any time.

    A process begins with this: one still waiting for its first job would outlive its parent by
    minutes. What an interrupt at the keyboard means is for the parent to say.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            sleep(look_every)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
