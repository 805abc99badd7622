"""Growing parts of the rows: the same rows from anywhere, and a start that saves passes."""

from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from tensorlace import TNKMRegressor
from tensorlace.columns.bases import Chebyshev
from tensorlace.columns.columns import columns_from_summaries
from tensorlace.columns.summaries import summarise_table
from tensorlace.columns.warps import MinMax, Standardise
from tensorlace.fitting import config
from tensorlace.fitting.checkpoint import Checkpointer
from tensorlace.rows import stages as subsample
from tensorlace.rows.memory import MemoryRows
from tensorlace.rows.stages import gather, stages
from tensorlace.rows.streamed import StreamedRows
from tensorlace.sources import ArraySource, BlockSource
from tensorlace.sources.sampling import hashes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SMALL = partial(stages, first_rows=150, rows_per_weight=1)
MASK = (1 << 64) - 1


def splitmix64(index):
    """The published generator, one number at a time, in whole numbers of Python."""
    z = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


@pytest.mark.parametrize("first", [0, 1, 12_345, 10**12])
def test_hashes_are_splitmix64(first):
    assert hashes(first, 50).tolist() == [splitmix64(k) for k in range(first, first + 50)]


def test_hashes_depend_on_the_row_only():
    whole = hashes(0, 1000)
    parts = [hashes(a, b - a) for a, b in pairwise([0, 1, 400, 999, 1000])]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("n_rows", [2, 1000, 49_999, 50_000, 10**6, 10**9])
@pytest.mark.parametrize("n_weights", [1, 500, 20_000])
def test_stages_grow_and_stay_small(n_rows, n_weights):
    sizes = stages(n_rows, n_weights, 8)
    assert all(2.8 * a < b for a, b in pairwise([*sizes, n_rows]))
    assert all(a >= max(10_000, 10 * n_weights) for a in sizes)
    assert all(a * 10 <= subsample.MOST_NUMBERS for a in sizes)
    if n_rows < 20_000:
        assert sizes == ()


def table(N=4000, D=3, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 3, (N, D))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(N)
    weight = rng.integers(0, 3, N).astype(float) if weighted else None
    return X, y, weight


def columns_of(X, y):
    D = X.shape[1]
    columns = columns_from_summaries(
        summarise_table(X),
        n_basis=(3,) * D,
        bases=(Chebyshev,) * D,
        warps=(MinMax,) * D,
        names=tuple("abc"[:D]),
    )
    return columns, Standardise.from_summary(summarise_table(y[:, None])[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_is_what_the_hashes_say(weighted):
    X, y, weight = table(weighted=weighted)
    columns, target = columns_of(X, y)
    sample = gather(ArraySource(X, y, weight), columns, target, 1000)
    present = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    for size in (1000, 500, 60):
        part = sample.part(size, len(y))
        chosen = np.array([splitmix64(k) * len(y) < size << 64 for k in range(len(y))])
        assert np.all(np.diff(np.flatnonzero(chosen)) > 0)
        low, high = binom.interval(1 - 1e-6, len(y), size / len(y))
        assert low <= chosen.sum() <= high
        chosen &= present
        assert np.array_equal(part.u, columns.variables(X)[:, chosen])
        assert np.array_equal(part.y, target(y)[chosen])
        if weight is not None:
            assert np.array_equal(part.weight, weight[chosen])


def test_parts_are_nested():
    X, y, _ = table()
    sample = gather(ArraySource(X, y), *columns_of(X, y), 2000)
    parts = [set(sample.part(size, len(y)).key.tolist()) for size in (100, 400, 2000)]
    assert parts[0] < parts[1] < parts[2]


@pytest.mark.parametrize("threads", [1, 2])
def test_any_cut_gives_the_same_part(threads):
    X, y, _ = table(N=200_000)
    columns, target = columns_of(X, y)
    whole = gather(ArraySource(X, y), columns, target, 5000)
    cuts = [0, 1, 70_000, 70_001, 150_000, len(y)]
    blocks = BlockSource(lambda: iter([(X[a:b], y[a:b]) for a, b in pairwise(cuts)]))
    cut = gather(blocks, columns, target, 5000, threads)
    assert np.array_equal(cut.key, whole.key)
    assert np.array_equal(cut.u, whole.u)
    assert np.array_equal(cut.y, whole.y)


def model(**options):
    settings = {
        "rank": 2,
        "n_basis": 4,
        "solver": "als",
        "curvature": "last",
        "max_sweeps": 6,
        "random_state": 0,
        "grow_rows": True,
    }
    return TNKMRegressor(**{**settings, **options})


def bits(fitted):
    fit = fitted.machines_[0].fit
    return [*fit.cores, fit.beta, fit.log_evidence, fit.posterior.variances(), *fit.history]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(bits(a), bits(b), strict=True))


@pytest.fixture
def small_stages(monkeypatch):
    monkeypatch.setattr(config, "stages", SMALL)


@pytest.mark.parametrize("solver", ["als", "gauss_newton", "matrix_free"])
def test_same_bits_from_memory_disk_and_blocks(solver, small_stages, tmp_path):
    X, y, _ = table()
    pq.write_table(pa.table({**dict(zip("abc", X.T, strict=True)), "y": y}), tmp_path / "t.parquet")
    reference = model(solver=solver).fit(X, y)
    for budget in (0, 1 << 30):
        disk = model(solver=solver, memory_budget=budget, n_jobs=2)
        assert same(disk.fit_rows(tmp_path / "t.parquet", "y"), reference)
    blocks = BlockSource(lambda: iter([(X[:77], y[:77]), (X[77:], y[77:])]))
    assert same(model(solver=solver, memory_budget=0).fit_rows(blocks), reference)
    assert not same(model(solver=solver, grow_rows=False).fit(X, y), reference)


def test_weights_and_members_grow_too(small_stages):
    X, y, weight = table(weighted=True)
    present = weight > 0
    X, y, weight = X[present], y[present], weight[present]
    memory = model(n_members=2).fit(X, y, weight)
    blocks = BlockSource(lambda: iter([(X[:9], y[:9], weight[:9]), (X[9:], y[9:], weight[9:])]))
    streamed = model(n_members=2, n_jobs=2, memory_budget=0).fit_rows(blocks)
    for a, b in zip(memory.machines_, streamed.machines_, strict=True):
        assert all(map(np.array_equal, a.fit.cores, b.fit.cores))
        assert a.fit.beta == b.fit.beta


def test_a_stream_without_weight_in_the_part_begins_on_all(small_stages):
    X, y, _ = table()
    weight = (hashes(0, len(y)) > np.uint64(1 << 63)).astype(float)
    blocks = BlockSource(lambda: iter([(X, y, weight)]))
    grown = model(memory_budget=0).fit_rows(blocks)
    assert same(grown, model(memory_budget=0, grow_rows=False).fit_rows(blocks))


@pytest.mark.parametrize("solver", ["als", "gauss_newton", "matrix_free"])
def test_resuming_after_any_step_gives_the_same_bits(solver, small_stages, tmp_path, monkeypatch):
    X, y, _ = table(N=2500)
    options = {"solver": solver, "max_sweeps": 25, "tol": 0.0}
    whole = model(**options).fit(X, y)
    save = Checkpointer.save
    for stop in (1, 2, 5, 9, 14, 20):
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


def test_a_small_table_is_left_alone():
    X, y, _ = table(N=3000)
    fits = [model(grow_rows=grow).fit(X, y) for grow in (False, True, "auto")]
    assert same(fits[0], fits[1])
    assert same(fits[0], fits[2])


@pytest.mark.parametrize("rows", [MemoryRows, StreamedRows])
def test_fewer_passes_to_the_same_optimum(rows, small_stages, monkeypatch):
    """One rank-one term: the optimum has one value, and a part of the rows leads close to it."""
    X, y, _ = table(N=40_000)
    passes = []
    reduce = rows.reduce

    def counted(self, kernel, *, light=False):
        if self.n_rows == len(y):
            passes[-1] += 1
        return reduce(self, kernel, light=light)

    monkeypatch.setattr(rows, "reduce", counted)
    options = {
        "rank": 1,
        "max_sweeps": 300,
        "memory_budget": 0 if rows is StreamedRows else 1 << 30,
    }
    options |= {"noise_precision": 20.0, "prior_precision": 1.0}
    fits = []
    for grow in (False, True):
        passes.append(0)
        fitted = model(**options, grow_rows=grow).fit_rows(
            BlockSource(lambda: iter([(X, y)])) if rows is StreamedRows else ArraySource(X, y)
        )
        fits.append(fitted.machines_[0].fit)
    assert all(fit.gradient <= 1e-6 for fit in fits)
    assert fits[1].history[-1] == pytest.approx(fits[0].history[-1], rel=1e-9)
    assert passes[1] < passes[0]


def test_precisions_are_learned_on_all_rows(small_stages):
    X, y, _ = table(N=4000)
    options = {"solver": "gauss_newton", "curvature": "ggn", "max_sweeps": 200, "rank": 1}
    cold, grown = (model(**options, grow_rows=grow).fit(X, y) for grow in (False, True))
    assert grown.noise_precision_ == pytest.approx(cold.noise_precision_, rel=1e-4)
    assert grown.log_evidence_ == pytest.approx(cold.log_evidence_, abs=1e-3)


@pytest.mark.parametrize(
    ("grow", "n_rows", "n_weights", "expected"),
    [
        ("auto", 49_999, 100, False),
        ("auto", 79_000, 100, False),  # the first stage would not be an eighth
        ("auto", 80_000, 100, True),
        ("auto", 100_000, 2560, False),
        (True, 100_000, 2560, True),
        (True, 20_000, 100, False),  # two thirds of the rows are no stage
        (False, 10**7, 100, False),
    ],
)
def test_when_rows_grow(grow, n_rows, n_weights, expected):
    chosen = config.Config.of(TNKMRegressor(grow_rows=grow).get_params(deep=False), 8)
    assert bool(chosen.stages(n_rows, n_weights, 8)) == expected
