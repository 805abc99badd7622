"""Work side by side: the same results from threads and processes."""

import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, parallel_config
from threadpoolctl import threadpool_info

from tensorlace import InputError, TNKMRegressor
from tensorlace.search import parallel as workers
from tensorlace.search import search
from tensorlace.search.parallel import Workers

BOTH = [Workers(2), Workers(2, processes=True)]


@pytest.mark.parametrize("side_by_side", BOTH)
def test_results_and_news_come_in_order(side_by_side):
    told = []
    powers = [3**k for k in range(7)]
    jobs = [partial(pow, 3, k) for k in range(7)]
    assert side_by_side(jobs, lambda *news: told.append(news)) == powers
    assert told == list(enumerate(powers))


@pytest.mark.parametrize("side_by_side", BOTH)
def test_an_error_is_the_job_s_own(side_by_side):
    def fail():
        raise InputError("column 3 is empty")

    with pytest.raises(InputError, match="column 3 is empty"):
        side_by_side([os.getpid, fail])


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("side_by_side", BOTH)
def test_linear_algebra_has_one_thread(side_by_side):
    def job():
        np.ones((2, 2)) @ np.ones((2, 2))
        return blas_threads()

    assert all(set(threads) == {1} for threads in side_by_side([job, job]))


def test_processes_are_others_unless_a_user_says_threads():
    apart = Workers(2, processes=True)
    assert os.getpid() not in apart([os.getpid] * 3)
    with parallel_config(backend="threading"):
        assert set(apart([os.getpid] * 3)) == {os.getpid()}


def filters():
    return warnings.filters[0][0]


def test_warnings_are_kept_to_this_process():
    before = list(warnings.filters)
    assert Workers(2, processes=True)([filters] * 2) == ["ignore"] * 2
    with parallel_config(backend="threading"):
        Workers(2, processes=True)([partial(sleep, 0.05), partial(sleep, 0.1)] * 2)
    assert warnings.filters == before


@pytest.mark.parametrize("able", [True, False])
def test_a_backend_that_only_gives_lists_will_do(able, monkeypatch):
    class Told(Parallel):
        def __init__(self, *how, **options):
            asked.append(options.get("return_as"))
            super().__init__(*how, **options)

    asked = []
    backend = SimpleNamespace(supports_return_generator=able)
    monkeypatch.setattr(workers, "get_active_backend", lambda **how: (backend, 1))
    monkeypatch.setattr(workers, "Parallel", Told)
    assert Workers(2)([partial(pow, 2, k) for k in range(3)]) == [1, 2, 4]
    assert asked == ["generator" if able else None]


def test_workers_end_with_their_parent():
    """Killed outright, as by an interrupt of the command line."""
    code = """
import os
from time import sleep
from tensorlace.search.parallel import Workers
def told(number, pid):
    print(pid, flush=True)
    os._exit(130)
Workers(2, processes=True)([os.getpid, lambda: sleep(60)], told)
"""
    how = {"capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], check=False, **how)
    assert done.returncode == 130
    pid, patience = int(done.stdout), monotonic() + 20
    while monotonic() < patience and Path(f"/proc/{pid}").exists():
        sleep(0.2)
    assert not Path(f"/proc/{pid}").exists()


def test_a_search_gives_the_same_bits_by_processes_and_threads(monkeypatch):
    monkeypatch.setattr(search, "_APART_BUDGET", 0.5)
    made = []
    monkeypatch.setattr(search, "Workers", lambda *how: made.append(Workers(*how)) or made[-1])
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (230, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(230)
    model = TNKMRegressor(time_budget=1.0, n_members=4, n_jobs=2, random_state=0)
    apart = model.fit(X, y).predict(X, return_std=True)
    with parallel_config(backend="threading"):
        together = model.fit(X, y).predict(X, return_std=True)
    np.testing.assert_array_equal(apart, together)
    assert made == [Workers(2, processes=True)] * 2
