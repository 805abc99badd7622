"""On a Dask cluster: the same bits, also when workers die."""

import os
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlace import ClusterError, InputError, TNKMRegressor
from tensorlace.sources import BlockSource, open_source
from tensorlace.sources import dask as cluster_module
from tensorlace.sources.dask import DaskTable

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# a cluster logs and warns in its own ways while it comes and goes
pytestmark = pytest.mark.filterwarnings("ignore")
N = 300_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 3, (N, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    X, y = table
    path = tmp_path_factory.mktemp("cluster") / "t.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path, row_group_size=50_000)
    return path


def model(**options):
    settings = {"rank": 3, "n_basis": 4, "solver": "als", "curvature": "last", "max_sweeps": 3}
    return TNKMRegressor(**{**settings, "random_state": 0, **options})


def bits(fitted):
    fit = fitted.machines_[0].fit
    return [*fit.cores, fit.beta, fit.posterior.variances(), *fit.history]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(bits(a), bits(b), strict=True))


@pytest.fixture(scope="module")
def reference(table):
    return model().fit(*table)


def local_cluster(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
    )


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        yield client


def test_a_file_on_the_cluster_gives_the_bits_of_memory(client, path, reference):
    assert same(model().fit_rows(path, "y", client=client), reference)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_does_not_change_a_bit(workers, path, reference):
    with local_cluster(workers) as cluster, distributed.Client(cluster) as client:
        assert same(model().fit_rows(path, "y", client=client), reference)


def test_dask_collections(client, table, path, reference):
    X, y = (da.from_array(a, chunks=(77_777, *a.shape[1:])) for a in table)
    fitted = model().fit(X, y)
    assert same(fitted, reference)
    mean, std = fitted.predict(X, return_std=True)
    expected = reference.predict(table[0], return_std=True)
    np.testing.assert_allclose(mean.compute(), expected[0], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(std.compute(), expected[1], rtol=1e-13)
    np.testing.assert_allclose(fitted.predict(X).compute(), expected[0], rtol=1e-13, atol=1e-13)

    frame = dd.read_parquet(path)
    framed = model().fit(frame[["a", "b"]], frame["y"])
    assert same(framed, reference)
    assert list(framed.feature_names_in_) == ["a", "b"]
    lazy = framed.predict(frame[["a", "b"]]).compute()
    np.testing.assert_allclose(lazy, expected[0], rtol=1e-13, atol=1e-13)


def test_normalised_weights_on_the_cluster(client, table):
    """Scaled piece by piece, to the bits of memory; impossible ones are refused."""
    shares = 1e-3 * (0.5 + np.random.default_rng(1).random(N))
    expected = model(weights="relative").fit(*table, sample_weight=shares)
    X, y, w = (da.from_array(a, chunks=(77_777, *a.shape[1:])) for a in (*table, shares))
    assert same(model().fit(X, y, sample_weight=w), expected)
    assert same(model(weights="relative").fit(X, y, sample_weight=w), expected)
    wrong = np.where(np.arange(N) == 200_000, np.nan, shares)
    with pytest.raises(InputError, match="sample_weight is nan in row 200000"):
        model().fit(X, y, sample_weight=da.from_array(wrong, chunks=77_777))


def test_killed_workers_do_not_change_a_bit(path, reference):
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        killed = []

        def kill():
            while len(killed) < 3:
                time.sleep(1.0)
                pids = [w["pid"] for w in client.run(_identity).values()]
                if pids:
                    os.kill(pids[0], signal.SIGKILL)
                    killed.append(pids[0])

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        fitted = None
        while fitted is None or killer.is_alive():
            fitted = model().fit_rows(path, "y", client=client)
            assert same(fitted, reference)
        assert len(killed) == 3


def _identity():
    return {"pid": os.getpid()}


def test_no_workers_is_a_typed_error(path, monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 3.0)
    with local_cluster(1) as cluster, distributed.Client(cluster) as client:
        cluster.scale(0)
        deadline = time.monotonic() + 20
        while client.scheduler_info()["workers"] and time.monotonic() < deadline:
            time.sleep(0.1)
        with pytest.raises(ClusterError, match="no worker has answered"):
            model().fit_rows(path, "y", client=client)


def test_what_a_cluster_cannot_do(table):
    with pytest.raises(ClusterError, match="random access"):
        DaskTable(BlockSource(lambda: iter([table])), client=None)
    X, y = (da.from_array(a[:100]) for a in table)
    if not distributed.client._get_global_client():
        with pytest.raises(ClusterError, match=r"distributed\.Client\(\)"):
            model().fit(X, y)


def test_a_task_carries_no_rows(path):
    """Paths and cores travel, never data."""
    import cloudpickle

    assert len(cloudpickle.dumps(open_source(path, "y"))) < 20_000
