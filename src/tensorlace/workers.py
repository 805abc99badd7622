"""Work that is done side by side: by threads, or by processes where threads would take turns."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

__all__ = ["Workers"]


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
        self, jobs: Sequence[Callable[[], Any]], told: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Results of all jobs, in order; each has one thread for its linear algebra.

        ``told`` hears the number of each job that is done, in this process.
        """
        how: dict[str, Any] = {"prefer": "threads", "require": "sharedmem"}
        if self.processes:
            how = {"prefer": "processes", "max_nbytes": None, "batch_size": 1}
        results = []
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.count, return_as="generator", **how)
            work = _alone if self.processes else _call
            for number, result in enumerate(run(delayed(work)(job) for job in jobs)):
                results.append(result)
                if told is not None:
                    told(number)
        return results


def _call(job: Callable[[], Any]) -> Any:
    return job()


def _alone(job: Callable[[], Any]) -> Any:
    """Do a job in another process, with as many threads as here and without warnings.

    They would be printed there, whatever the filters of this process say.
    """
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return job()
