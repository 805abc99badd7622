"""The same bits from memory, disk and blocks, with any threads; checkpoints resume to them."""

import signal
import subprocess
import sys
import time
from importlib import import_module
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensorlace import InputError, SourceError, TNKMRegressor
from tensorlace.sources import ArraySource, BlockSource, NpySource

FITTING = import_module("tensorlace.fitting.fit_machines")  # its function has the same name
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, D = 150_000, 3


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 3, (N, D))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(N)
    return X, y


@pytest.fixture(scope="module")
def files(table, tmp_path_factory):
    X, y = table
    path = tmp_path_factory.mktemp("rows")
    frame = pa.table({**{f"x{d}": X[:, d] for d in range(D)}, "y": y})
    pq.write_table(frame, path / "all.parquet", row_group_size=17_001)
    pa.csv.write_csv(frame, path / "all.csv")
    (path / "parts").mkdir()
    for k, start in enumerate((0, 40_000, 111_111)):
        stop = (40_000, 111_111, N)[k]
        pq.write_table(frame.slice(start, stop - start), path / "parts" / f"{k}.parquet")
    np.save(path / "X.npy", X)
    np.save(path / "y.npy", y)
    return path


def model(**options):
    settings = {
        "rank": 3,
        "n_basis": 4,
        "solver": "als",
        "curvature": "last",
        "warp": "quantile",
        "max_sweeps": 4,
        "random_state": 0,
    }
    return TNKMRegressor(**{**settings, **options})


def bits(fitted):
    fit = fitted.machines_[0].fit
    return [*fit.cores, fit.beta, fit.log_evidence, fit.posterior.variances(), *fit.history]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(bits(a), bits(b), strict=True))


@pytest.fixture(scope="module")
def reference(table):
    with pytest.warns(ConvergenceWarning):
        return model(n_jobs=1).fit(*table)


def odd_blocks(table):
    X, y = table
    cuts = [0, 1, 5000, 5001, 77_777, N]
    return [(X[a:b], y[a:b]) for a, b in pairwise(cuts)]


@pytest.mark.parametrize("budget", [1 << 30, 0], ids=["read once", "streamed"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["parquet", "parts", "csv", "npy", "blocks"])
def test_every_source_gives_the_bits_of_memory(kind, threads, budget, table, files, reference):
    source, target = {
        "parquet": (files / "all.parquet", "y"),
        "parts": (files / "parts", "y"),
        "csv": (files / "all.csv", "y"),
        "npy": (NpySource(files / "X.npy", files / "y.npy"), None),
        "blocks": (BlockSource(lambda: iter(odd_blocks(table))), None),
    }[kind]
    fitted = model(n_jobs=threads, memory_budget=budget).fit_rows(source, target)
    assert same(fitted, reference)
    assert fitted.n_features_in_ == D


@pytest.mark.parametrize("options", [{}, {"memory_budget": 0}, {"n_jobs": 2}])
def test_memory_and_threads_do_not_change_a_bit(options, table, reference):
    assert same(model(**options).fit(*table), reference)


def test_gauss_newton_and_ggn_stream_too(table, files):
    options = {"solver": "gauss_newton", "curvature": "ggn", "max_sweeps": 3, "rank": 2}
    assert same(
        model(**options, memory_budget=0).fit_rows(files / "all.csv", "y"),
        model(**options).fit(*table),
    )


def test_weights_stream_too(table):
    X, y = (a[:9000] for a in table)
    weight = np.random.default_rng(1).integers(1, 4, 9000).astype(float)
    cuts = [(X[:100], y[:100], weight[:100]), (X[100:], y[100:], weight[100:])]
    streamed = model(memory_budget=0).fit_rows(BlockSource(lambda: iter(cuts)))
    assert same(streamed, model().fit(X, y, weight))


def test_rows_of_weight_zero_are_absent_from_a_stream(table):
    X, y = (a[:3000].copy() for a in table)
    weight = np.ones(3000)
    weight[::3], X[::3], y[::3] = 0.0, 1e200, -1e200
    options = {"basis": "chebyshev", "warp": "minmax", "memory_budget": 0}
    streamed = model(**options).fit_rows(BlockSource(lambda: iter([(X, y, weight)])))
    present = weight > 0
    whole = model(**options).fit(X[present], y[present])
    np.testing.assert_allclose(
        streamed.predict(X[present]), whole.predict(X[present]), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("solver", ["als", "gauss_newton"])
def test_resuming_from_any_step_gives_the_same_bits(solver, table, tmp_path, monkeypatch):
    X, y = (a[:300] for a in table)
    options = {"solver": solver, "max_sweeps": 30, "tol": 0.0}
    whole = model(**options).fit(X, y)
    from tensorlace.fitting.checkpoint import Checkpointer

    save = Checkpointer.save
    for stop in range(1, 21):
        saved = []

        def killed(self, arrays, stop=stop, saved=saved):
            save(self, arrays)
            saved.append(1)
            if len(saved) == stop:
                raise KeyboardInterrupt

        path = tmp_path / f"{solver}{stop}"
        monkeypatch.setattr(Checkpointer, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            model(**options).fit_rows(ArraySource(X, y), checkpoint=path)
        monkeypatch.setattr(Checkpointer, "save", save)
        resumed = model(**options).fit_rows(ArraySource(X, y), checkpoint=path)
        assert same(resumed, whole), stop


def test_interrupt_leaves_a_checkpoint(tmp_path, files, table):
    """SIGINT in the middle: exit in two seconds, and the next run gets the bits of a whole one."""
    code = (
        "import signal, sys, warnings; warnings.simplefilter('ignore')\n"
        # who starts the tests in the background has told all their children to ignore it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tensorlace import TNKMRegressor\n"
        "TNKMRegressor(rank=3, n_basis=4, solver='als', curvature='last', warp='quantile',"
        " max_sweeps=40, random_state=0, memory_budget=0)"
        ".fit_rows(sys.argv[1], 'y', checkpoint=sys.argv[2])"
    )
    checkpoint = tmp_path / "fit"
    run = subprocess.Popen(
        [sys.executable, "-c", code, str(files / "all.parquet"), str(checkpoint)],
        stderr=subprocess.DEVNULL,
    )
    written = tmp_path / "fit.0.npz"
    deadline = time.monotonic() + 60
    while not written.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=200) != 0
    steps = int(np.load(written)["counters"][0])
    assert 1 <= steps < 40
    resumed = model(max_sweeps=40).fit_rows(files / "all.parquet", "y", checkpoint=checkpoint)
    assert same(resumed, model(max_sweeps=40).fit(*table))
    assert not list(tmp_path.glob(".*.tmp"))


def test_checkpoint_of_another_fit_is_refused(table, tmp_path):
    X, y = (a[:200] for a in table)
    model().fit_rows(ArraySource(X, y), checkpoint=tmp_path / "c")
    others = [{"random_state": 1}, {"prior_groups": "order"}, {"noise_precision": 4.0}]
    for other in others:
        with pytest.raises(SourceError, match="another table, model or random_state"):
            model(**other).fit_rows(ArraySource(X, y), checkpoint=tmp_path / "c")
    with pytest.raises(SourceError, match="another table, model or random_state"):
        model().fit_rows(ArraySource(X, y + X[:, 0]), checkpoint=tmp_path / "c")
    (tmp_path / "c.0.npz").write_bytes(b"PK broken")
    with pytest.raises(SourceError, match="remove it to start anew"):
        model().fit_rows(ArraySource(X, y), checkpoint=tmp_path / "c")


def test_errors_name_the_place(table, tmp_path):
    X, y = (a[:200].copy() for a in table)
    with pytest.raises(InputError, match="name the column to predict"):
        model().fit_rows(tmp_path / "x.csv")
    y[150] = np.nan
    blocks = [(X[:100], y[:100]), (X[100:], y[100:])]
    with pytest.raises(SourceError, match=r"NaN.*150"):
        model().fit_rows(BlockSource(lambda: iter(blocks)))
    frame = pa.table({"a": X[:, 0], "y": np.where(np.isnan(y), 0.0, y)})
    pq.write_table(frame, tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="did you mean"):
        model().fit_rows(tmp_path / "t.parquet", "yy")


def test_a_file_that_changes_between_passes_is_refused(table, tmp_path, monkeypatch):
    X, y = (a[:5000] for a in table)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "y": y}), path)
    after_the_first_pass = FITTING.columns_from_summaries

    def change_the_file(*summaries, **options):
        pq.write_table(pa.table({"a": X[:, 1], "y": y}), path)
        return after_the_first_pass(*summaries, **options)

    monkeypatch.setattr(FITTING, "columns_from_summaries", change_the_file)
    with pytest.raises(SourceError, match=r"t\.parquet.*chang"):
        model(memory_budget=0).fit_rows(path, "y")


CAPPED = """
import resource, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pyarrow.parquet
from tensorlace import TNKMRegressor
TNKMRegressor(rank=2, n_basis=3, max_sweeps=1).fit(np.eye(9), np.arange(9.0))
with open("/proc/self/statm") as f:
    data = int(f.read().split()[5]) * 4096
cap = data + (256 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
m = TNKMRegressor(
    rank=4, n_basis=4, solver="als", curvature="last", max_sweeps=1, basis="polynomial",
    warp="minmax", n_jobs=2, memory_budget=1 << 20, random_state=0,
).fit_rows(sys.argv[1], "y")
print(m.n_iter_)
"""


def test_a_file_larger_than_the_memory_cap_fits(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "big.parquet"
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        while path.stat().st_size <= 256 << 20:
            block = rng.standard_normal((2, 200_000))
            writer.write_table(pa.table(list(block), schema=schema), row_group_size=200_000)
    out = subprocess.run(
        [sys.executable, "-c", CAPPED, str(path)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert out.stdout.strip() == "1", out.stderr[-500:]
