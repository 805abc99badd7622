"""Work side by side: the same results from threads and processes."""

import os
import warnings
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info

from tensorlace import InputError, TNKMRegressor, search
from tensorlace.workers import Workers

BOTH = [Workers(2), Workers(2, processes=True)]


@pytest.mark.parametrize("workers", BOTH)
def test_results_and_news_come_in_order(workers):
    told = []
    assert workers([partial(pow, 3, k) for k in range(7)], told.append) == [3**k for k in range(7)]
    assert told == list(range(7))


@pytest.mark.parametrize("workers", BOTH)
def test_an_error_is_the_job_s_own(workers):
    def fail():
        raise InputError("column 3 is empty")

    with pytest.raises(InputError, match="column 3 is empty"):
        workers([os.getpid, fail])


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("workers", BOTH)
def test_linear_algebra_has_one_thread(workers):
    def job():
        np.ones((2, 2)) @ np.ones((2, 2))
        return blas_threads()

    assert all(set(threads) == {1} for threads in workers([job, job]))


def test_processes_are_others_unless_a_user_says_threads():
    apart = Workers(2, processes=True)
    assert os.getpid() not in apart([os.getpid] * 3)
    with parallel_config(backend="threading"):
        assert set(apart([os.getpid] * 3)) == {os.getpid()}


def test_processes_do_not_warn(capfd):
    Workers(2, processes=True)([partial(warnings.warn, "of no use", stacklevel=1)] * 2)
    assert "of no use" not in capfd.readouterr().err


def test_a_search_gives_the_same_bits_by_processes_and_threads(monkeypatch):
    monkeypatch.setattr(search, "_APART_BUDGET", 0.5)
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (230, 3))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(230)
    model = TNKMRegressor(time_budget=1.0, n_members=4, n_jobs=2, random_state=0)
    apart = model.fit(X, y).predict(X, return_std=True)
    with parallel_config(backend="threading"):
        together = model.fit(X, y).predict(X, return_std=True)
    np.testing.assert_array_equal(apart, together)
