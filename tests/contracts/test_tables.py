"""Every table, wherever its rows are: the same rows, sums and samples, to the bit.

Kinds of files come from their registry; a new one needs a writer here.
"""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest

from tensorlace import SourceError, TNKMRegressor
from tensorlace.sources import ArraySource, BlockSource, NpySource, open_source
from tensorlace.sources.dask import DaskTable
from tensorlace.sources.files import FORMATS, read_frame
from tensorlace.sources.reference_rows import gather_reference_rows
from tensorlace.sources.sampling import sample_of
from tensorlace.sources.table import PIECE_ROWS

pytest.importorskip("pyarrow")

N, D = 2 * PIECE_ROWS + 321, 3
NAMES = tuple("abc")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * 10.0 ** RNG.integers(-9, 9, (N, D))
Y = RNG.standard_normal(N)
W = RNG.integers(0, 3, N).astype(float)
FRAME = pd.DataFrame({**dict(zip(NAMES, X.T, strict=True)), "y": Y, "w": W})
WRITERS = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False, row_group_size=40_000),
    ".pq": lambda frame, path: frame.to_parquet(path, index=False),
}
"""How a frame becomes a file, by extension."""


class Done:
    """The result of a task that was done when it was submitted."""

    def __init__(self, value):
        self.value = value

    def result(self, timeout):
        return self.value

    def release(self):
        """Nothing is held."""


class Cluster:
    """A cluster of two workers in this process; tasks travel as pickles."""

    def scheduler_info(self, n_workers):
        return {"workers": ["one", "two"]}

    def submit(self, task, *arguments, pure):
        cloudpickle = pytest.importorskip("cloudpickle")
        task, arguments = pickle.loads(cloudpickle.dumps((task, arguments)))
        return Done(task(*arguments))


def blocks(weighted):
    for a in range(0, N, 50_001):
        cut = slice(a, a + 50_001)
        yield (X[cut], Y[cut], W[cut]) if weighted else (X[cut], Y[cut])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    for name, values in (("X", X), ("y", Y), ("w", W)):
        np.save(path / f"{name}.npy", values)
    for extension in FORMATS:
        WRITERS[extension](FRAME, path / f"t{extension}")
    return path


def in_npy(folder, weighted):
    w = folder / "w.npy" if weighted else None
    return NpySource(folder / "X.npy", folder / "y.npy", w, names=NAMES)


def in_file(extension, folder, weighted):
    path = folder / f"t{extension}"
    return open_source(path, "y", features=NAMES, weight="w" if weighted else None)


TABLES = {
    "memory": lambda folder, weighted: ArraySource(X, Y, W if weighted else None, NAMES),
    "blocks": lambda folder, weighted: BlockSource(partial(blocks, weighted), NAMES),
    "npy": in_npy,
    "cluster": lambda folder, weighted: DaskTable(in_npy(folder, weighted), Cluster()),
    **{extension: partial(in_file, extension) for extension in FORMATS},
}


@pytest.fixture(params=TABLES)
def name(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "weighted"])
def weighted(request):
    return request.param


@pytest.fixture
def table(name, folder, weighted):
    return TABLES[name](folder, weighted)


def collect(chunk):
    """All that is in a chunk, and that it is cut as all tables are."""
    assert chunk.first_row % PIECE_ROWS == 0
    assert chunk.n_rows <= PIECE_ROWS
    return [(chunk.first_row, chunk.X.copy(), chunk.y.copy(), chunk.weight)]


def test_what_is_said_of_it(table, weighted):
    assert table.names == NAMES
    assert table.n_rows == N
    assert (table.weight is not None) == weighted
    assert table.missing is False


@pytest.mark.parametrize("threads", [1, 3])
def test_all_rows_in_pieces(table, weighted, threads):
    pieces = table.reduce(collect, list.__add__, threads=threads)
    assert [piece[0] for piece in pieces] == [0, PIECE_ROWS, 2 * PIECE_ROWS]
    np.testing.assert_array_equal(np.concatenate([piece[1] for piece in pieces]), X)
    np.testing.assert_array_equal(np.concatenate([piece[2] for piece in pieces]), Y)
    if weighted:
        np.testing.assert_array_equal(np.concatenate([piece[3] for piece in pieces]), W)


def sums(chunk):
    return chunk.X.sum(axis=0)


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_have_the_same_bits(table, threads):
    parts = [X[a : a + PIECE_ROWS].sum(axis=0) for a in range(0, N, PIECE_ROWS)]
    expected = (parts[0] + parts[1]) + parts[2]
    found = table.reduce(sums, np.add, threads=threads)
    np.testing.assert_array_equal(found, expected)


def refuse(chunk):
    raise SourceError(f"row {chunk.first_row}")


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_the_work_comes_through(table, threads):
    with pytest.raises(SourceError, match="row 0"):
        table.reduce(refuse, list.__add__, threads=threads)


def test_the_whole_table_where_it_fits(table, name, weighted):
    """Rows with weights stay where they are, and so do those of a cluster."""
    generous, mean = table.whole(1 << 40), table.whole(0)
    assert (mean is not None) == table.in_memory == (name == "memory")
    assert (generous is not None) == (name == "memory" or not (weighted or name == "cluster"))
    if generous is not None:
        np.testing.assert_array_equal(generous.X, X)
        assert generous.first_row == 0


@pytest.mark.parametrize("size", [1, 100, 70_000])
def test_samples_are_the_same_rows(table, weighted, size):
    memory = TABLES["memory"](None, weighted)
    for gathered in (sample_of, gather_reference_rows):
        found, expected = gathered(table, size), gathered(memory, size)
        np.testing.assert_array_equal(found.X, expected.X)
        if weighted:
            np.testing.assert_array_equal(found.weight, expected.weight)
            assert np.all(found.weight > 0)


@pytest.mark.parametrize("weighted", [False], indirect=True)
def test_fits_have_the_same_bits(table, name, folder, weighted):
    memory, fits = TABLES["memory"](folder, weighted), []
    of_cluster = (in_npy(folder, weighted), Cluster())
    for source, client in (of_cluster if name == "cluster" else (table, None), (memory, None)):
        model = TNKMRegressor(rank=2, n_basis=3, max_sweeps=3, solver="als", tol=1, random_state=0)
        model.set_params(memory_budget=0, warp="quantile", grow_rows=True)
        fits.append(model.fit_rows(source, client=client).machines_[0].fit)
    for a, b in zip(fits[0].network.cores, fits[1].network.cores, strict=True):
        np.testing.assert_array_equal(a, b)
    assert fits[0].log_evidence == fits[1].log_evidence


@pytest.mark.parametrize("extension", FORMATS)
def test_files_are_known_by_extension_and_travel(extension, folder):
    source = open_source(folder / f"t{extension}", "y")
    assert type(source) is FORMATS[extension]
    assert source.names == (*NAMES, "w")
    source.read(0, N)
    assert len(pickle.dumps(source)) < 8000  # no rows inside
    again = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(again.read(100, 200).X, source.read(100, 200).X)
    assert str(folder / f"t{extension}") in source.locate(5)


@pytest.mark.parametrize("extension", FORMATS)
def test_frames_hold_columns_of_any_kind(extension, tmp_path):
    when = pd.to_datetime(["2026-01-01", "2026-01-03"])
    frame = pd.DataFrame({"x": [0.1, 2.0], "shop": ["a", "b"], "day": when, "code": ["007", "01"]})
    path = tmp_path / f"t{extension}"
    WRITERS[extension](frame, path)
    found = read_frame(path, text=["code"])
    assert found["x"].tolist() == [0.1, 2.0]
    assert found["shop"].tolist() == ["a", "b"]
    assert found["day"].tolist() == when.tolist()
    assert found["code"].tolist() == ["007", "01"]
    WRITERS[extension](frame[:0], path)
    with pytest.raises(SourceError, match="has no rows"):
        read_frame(path)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_file_that_is_changed_or_gone_is_refused(extension, tmp_path):
    path = tmp_path / f"t{extension}"
    WRITERS[extension](FRAME[:100], path)
    source = open_source(path, "y")
    WRITERS[extension](FRAME[100:201], path)
    for call in (source.verify, lambda: source.reduce(sums, np.add)):
        with pytest.raises(SourceError, match="changed since it was opened"):
            call()
    path.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        source.verify()


@pytest.mark.parametrize("extension", FORMATS)
def test_a_value_that_is_missing_is_told_by_place(extension, tmp_path):
    frame = FRAME[:100].copy()
    frame.loc[60, "b"] = np.nan
    path = tmp_path / f"t{extension}"
    WRITERS[extension](frame, path)
    source = open_source(path, "y")
    with pytest.raises(SourceError, match=rf"t\{extension}.*'b' is missing.*row 60 of the table"):
        source.read(0, 100)


def test_kinds_of_files_do_not_mix(tmp_path):
    for extension in FORMATS:
        WRITERS[extension](FRAME[:5], tmp_path / f"t{extension}")
    with pytest.raises(SourceError, match=r"all must be \.csv, or all \.parquet or \.pq"):
        open_source([tmp_path / f"t{extension}" for extension in FORMATS], "y")
