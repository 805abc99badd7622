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

from tensorlace import InputError
from tensorlace.search import parallel as workers
from tensorlace.search.parallel import Workers

BOTH = [Workers(2), Workers(2, processes=True)]


@pytest.mark.parametrize("side_by_side", BOTH)
def test_results_come_in_order(side_by_side):
    jobs = [partial(pow, 3, k) for k in range(7)]
    assert list(side_by_side.map(jobs)) == [3**k for k in range(7)]


@pytest.mark.parametrize("side_by_side", BOTH)
def test_results_come_as_soon_as_they_are_there(side_by_side, tmp_path):
    """The second job ends only after the result of the first has been seen here."""

    def second(path):
        patience = monotonic() + 20
        while not path.exists():
            assert monotonic() < patience
            sleep(0.01)
        return 2

    for number, result in enumerate(
        side_by_side.map([lambda: 1, partial(second, tmp_path / "seen")])
    ):
        (tmp_path / "seen").touch()
        assert result == number + 1


@pytest.mark.parametrize("side_by_side", BOTH)
def test_an_error_is_the_job_s_own(side_by_side):
    def fail():
        raise InputError("column 3 is empty")

    with pytest.raises(InputError, match="column 3 is empty"):
        list(side_by_side.map([os.getpid, fail]))


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("side_by_side", BOTH)
def test_linear_algebra_has_one_thread(side_by_side):
    def job():
        np.ones((2, 2)) @ np.ones((2, 2))
        return blas_threads()

    assert all(set(threads) == {1} for threads in side_by_side.map([job, job]))


def test_processes_are_others_unless_a_user_says_threads():
    apart = Workers(2, processes=True)
    assert os.getpid() not in apart.map([os.getpid] * 3)
    with parallel_config(backend="threading"):
        assert set(apart.map([os.getpid] * 3)) == {os.getpid()}


def filters():
    return warnings.filters[0][0]


def test_warnings_are_kept_to_this_process():
    before = list(warnings.filters)
    assert list(Workers(2, processes=True).map([filters] * 2)) == ["ignore"] * 2
    with parallel_config(backend="threading"):
        list(Workers(2, processes=True).map([partial(sleep, 0.05), partial(sleep, 0.1)] * 2))
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
    assert list(Workers(2).map([partial(pow, 2, k) for k in range(3)])) == [1, 2, 4]
    assert asked == ["generator" if able else None]


def test_workers_end_with_their_parent():
    """Killed outright, as by an interrupt of the command line."""
    code = """
import os
from time import sleep
from tensorlace.search.parallel import Workers
for pid in Workers(2, processes=True).map([os.getpid, lambda: sleep(60)]):
    print(pid, flush=True)
    os._exit(130)
"""
    how = {"capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], check=False, **how)
    assert done.returncode == 130
    pid, patience = int(done.stdout), monotonic() + 20
    while monotonic() < patience and Path(f"/proc/{pid}").exists():
        sleep(0.2)
    assert not Path(f"/proc/{pid}").exists()
