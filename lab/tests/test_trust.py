"""The page of what can be trusted: tables, systems, figures and verdicts."""

import io
import pickle
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from tensorlace import Mixture, Normal, metrics
from tensorlace.errors import InputError, SourceError
from tensorlace_lab.measuring.cells import Cell
from tensorlace_lab.measuring.processes import processor_seconds
from tensorlace_lab.measuring.runner import Options
from tensorlace_lab.trust import (
    beyond,
    few_rows,
    made_up,
    on_tables,
    outliers,
    relevance,
    shift,
    tables,
    weights,
    yacht,
)
from tensorlace_lab.trust.experiment import BEFORE, EXPERIMENT, SECTIONS
from tensorlace_lab.trust.judging import judged, share_range, standardised
from tensorlace_lab.trust.reading import FrameUnpickler, keel, packaged, parted
from tensorlace_lab.trust.section import EARLIER, NOW
from tensorlace_lab.trust.systems import BOOSTED, CATBOOST, FIXED, GP, RIDGE, SETTINGS, ask
from tensorlace_lab.trust.tables import ALL_ROWS, TABLES, Table, drawn, loaded

N = 600


def mixed(n=N, seed=0):
    """A frame with numbers, categories, dates and gaps, and a target that all of them move."""
    rng = np.random.default_rng(seed)
    number, level = rng.uniform(-1, 1, n), rng.integers(0, 3, n)
    days = rng.integers(0, 1000, n)
    y = 2 * number + level + days / 500 + (0.1 + 0.4 * (number > 0)) * rng.standard_normal(n)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.uniform(size=n) < 0.1, np.nan, number),
            "text": pd.Categorical(np.array(["a", "b", "c"])[level]),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            "flag": rng.uniform(size=n) < 0.5,
        }
    )
    return frame, y


@pytest.fixture
def table(monkeypatch):
    """A table of our own by the name "hitters"."""
    monkeypatch.setitem(TABLES, "hitters", Table(mixed, "none", "units", N))
    loaded.cache_clear()
    yield TABLES["hitters"]
    loaded.cache_clear()


def record(section, set_, system, experiment=NOW, split=1, **found):
    about = {"seconds": 1.0, "processor_seconds": 4.0, "cores": 2, "n_test": 1000, "column": "x"}
    error = {"error": found.pop("error")} if "error" in found else {}
    usual = {"coverage50": 0.5, "coverage90": 0.9, "coverage95": 0.95, "beyond10": 0.0}
    usual |= {"worst_z": 4.0, "crps": 1.0, "nll": 1.0, "rmse": 1.0, "off": 0.0}
    place = {"experiment": experiment, "set": set_, "split": split, "system": system}
    of = {} if error else {**usual, **found}
    return {**place, "protocol": section, "metrics": of, **about, **error}


# figures


def test_judged_is_what_intervals_and_integrals_say():
    rng = np.random.default_rng(0)
    means, noises, parts = rng.normal(size=(2, 20)), rng.uniform(0.5, 2, (2, 20)), [0.3, 0.7]
    dist = Mixture(means, np.zeros((2, 20)), noises, parts)
    y = 2 * rng.standard_normal(20)
    y[7] = 40.0
    found = judged(y, dist)
    for level in (0.5, 0.9, 0.95):
        assert found[f"coverage{100 * level:.0f}"] == metrics.coverage(y, dist, level)
    mean = np.dot(parts, means)
    z = (y - mean) / np.sqrt(np.dot(parts, noises**2 + means**2) - mean**2)
    assert found["worst_z"] == pytest.approx(abs(z[7]), rel=1e-12)
    assert abs(z[7]) > 10
    assert found["beyond10"] == 1 / 20
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((mean - y) ** 2)), rel=1e-12)
    density = np.dot(parts, stats.norm.pdf(y, means, noises))
    assert found["nll"] == pytest.approx(-np.mean(np.log(density)), rel=1e-9)
    grid = np.linspace(-20, 50, 70_001)[:, None, None]
    below = np.tensordot(stats.norm.cdf(grid, means, noises), parts, (1, 0))
    squares = (below - (grid[:, 0] >= y)) ** 2
    crps = integrate.trapezoid(squares, dx=1e-3, axis=0)
    assert found["crps"] == pytest.approx(np.mean(crps), rel=1e-4)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (93, 100), (9_412, 10_000)])
def test_the_range_of_a_share_is_that_of_the_binomial_test(hits, n):
    exact = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose(share_range(hits, n), (exact.low, exact.high), rtol=1e-9)


def test_processor_seconds_count_a_child_that_still_runs():
    code = "import time\nwhile time.process_time() < 0.6: pass\nprint('done', flush=True)\ninput()"
    before = processor_seconds()
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "done\n"
    running = processor_seconds() - before
    child.communicate("\n")
    ended = processor_seconds() - before
    assert 0.55 < running < 5.0
    assert running - 0.05 < ended < 5.0  # and is not counted twice


# tables


def test_pickled_frames_are_read_and_nothing_else():
    assert FrameUnpickler(io.BytesIO(pickle.dumps(slice(1, 2)))).load() == slice(1, 2)
    for harm in (print, time.sleep, subprocess.Popen):
        with pytest.raises(SourceError, match="no part of a frame"):
            FrameUnpickler(io.BytesIO(pickle.dumps(harm))).load()


def test_tables_of_the_keel_collection(tmp_path):
    text = "@relation r\n@attribute a real[0,1]\n@attribute b{1,2} x\n@data\n0.5, 1\n\n0.25, 2\n"
    (tmp_path / "r.dat").write_text(text)
    expected = pd.DataFrame({"a": [0.5, 0.25], "b": [1, 2]})
    pd.testing.assert_frame_equal(keel(tmp_path / "r.dat"), expected)


def test_a_table_without_its_target_and_what_gives_it_away():
    frame = pd.DataFrame(
        {"id": [1, 2, 3], "text": ["a", "b", None], "y": [1, np.nan, 3], "log y": [0.0, 1.0, 2.0]}
    )
    X, y = parted(frame, "y", "id", "log y")
    assert list(X.columns) == ["text"]
    assert X["text"].dtype == "category"
    assert X["text"].isna().tolist() == [False, True]
    assert y.tolist() == [1.0, 3.0]
    with pytest.raises(InputError, match="no column z in the table"):
        parted(frame, "z")


def test_a_package_that_is_not_here_is_named():
    with pytest.raises(SourceError, match="a file of no-such-package"):
        packaged("no-such-package", "x.csv")
    with pytest.raises(SourceError, match=r"numpy has no file x\.csv"):
        packaged("numpy", "x.csv")


def test_rows_are_drawn_by_the_seed(table, monkeypatch):
    rows = drawn("hitters", 1)
    assert (len(rows.X), len(rows.X_test)) == (480, 120) == (table.n_train, table.n_test)
    assert sorted([*rows.X.index, *rows.X_test.index]) == list(range(N))
    frame, y = mixed()
    np.testing.assert_array_equal(rows.y_test, y[rows.X_test.index])
    pd.testing.assert_frame_equal(rows.X, frame.loc[rows.X.index])
    pd.testing.assert_frame_equal(drawn("hitters", 1).X, rows.X)
    assert set(drawn("hitters", 2).X_test.index) != set(rows.X_test.index)
    monkeypatch.setattr(tables, "MOST_TRAIN", 100)
    monkeypatch.setattr(tables, "MOST_TEST", 50)
    few = drawn("hitters", 1)
    assert (len(few.X), len(few.X_test)) == (100, 50)
    with pytest.raises(InputError, match="no table 'mars'"):
        drawn("mars", 1)


def test_there_are_thirty_tables():
    assert len(TABLES) - 1 >= 30
    assert len({t.load for t in TABLES.values()}) == len(TABLES) - 1


@pytest.mark.parametrize("name", [name for name in TABLES if name != ALL_ROWS])
def test_a_table_is_what_the_registry_says(name):
    try:
        distribution(TABLES[name].package)
    except PackageNotFoundError as error:
        pytest.skip(str(error))
    X, y = loaded(name)
    assert len(X) == len(y) == TABLES[name].n_rows
    assert np.isfinite(y).all()
    for column in X.columns:
        assert str(X[column].dtype) != "object"
        assert not X[column].is_unique or X[column].dtype != "category"
        if pd.api.types.is_numeric_dtype(X[column]) and X[column].nunique() > 1:
            there = X[column].notna().to_numpy()
            assert abs(stats.spearmanr(X[column][there], y[there]).statistic) < 0.999


# systems


@pytest.mark.filterwarnings("ignore:The optimal value found")
@pytest.mark.parametrize("system", [RIDGE, BOOSTED, CATBOOST, GP, "tnkm 2 s"])
def test_every_system_takes_tables_as_they_come(system):
    if system == CATBOOST:
        pytest.importorskip("catboost")
    X, y = mixed()
    X_test, y_test = mixed(300, 1)
    X_test["text"] = X_test["text"].cat.add_categories("new")
    X_test.loc[0, "text"] = "new"
    predict, model = ask(system, X, y, 1)
    dist = predict(X_test)
    assert (model is None) == (system not in SETTINGS)
    assert np.sqrt(np.mean((dist.mean - y_test) ** 2)) < 0.6 * np.std(y_test)
    assert 0.85 < judged(y_test, dist)["coverage95"] < 0.995
    assert np.all(dist.std > 0)


def test_boosted_trees_learn_where_noise_is_large():
    X, y = mixed(3000)
    dist = ask(BOOSTED, X, y, 1)[0](X)
    known = X["number"].notna().to_numpy()
    large = (X["number"] > 0).to_numpy()
    # 0.5 and 0.1 by construction; the error of the mean adds to both
    assert 0.45 < np.median(dist.std[known & large]) < 0.6
    assert 0.1 < np.median(dist.std[known & ~large]) < 0.2


def test_boosted_trees_have_no_bins_for_many_levels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"level": pd.Categorical(rng.integers(0, 400, 2000).astype(str))})
    predict = ask(BOOSTED, X, rng.standard_normal(2000), 1)[0]
    assert np.all(np.isfinite(predict(X).mean))


# sections


def test_the_top_tenth_of_a_column_is_left_out():
    frame, _ = mixed(5000)
    frame["few"] = np.arange(5000) % 3
    for seed in range(5):
        name, train, test = shift.beyond_top(frame, seed)
        assert name == "number"
        assert len(train) + len(test) == shift.MOST_ROWS
        assert not set(train) & set(test)
        x = frame[name].to_numpy()
        assert np.nanmax(x[train]) < np.min(x[test])
        assert 0.08 < len(test) / len(train) < 0.12  # of the rows without a gap a tenth


def test_a_column_whose_top_is_one_value_is_not_chosen():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.minimum(rng.uniform(size=500), 0.5), "b": rng.uniform(size=500)})
    assert {shift.beyond_top(frame, seed)[0] for seed in range(10)} == {"b"}
    with pytest.raises(InputError, match="no column has 20 values and a top tenth"):
        shift.beyond_top(frame[["a"]], 0)


def test_every_table_of_the_shift_has_such_a_column():
    packages = {TABLES[name].package for name in TABLES}
    for package in packages:
        try:
            distribution(package)
        except PackageNotFoundError as error:
            pytest.skip(str(error))
    for name in (*shift.SECTION.sets, *shift.NO_SUCH_COLUMN):
        numbers = loaded(name)[0].select_dtypes("number")
        assert (numbers.nunique().max() >= 20) == (name in shift.SECTION.sets)


def test_a_cell_of_the_tables(table):
    found = on_tables.SECTION.run(Cell(NOW, "hitters", 1, RIDGE, "tables"), None)
    rows = drawn("hitters", 1)
    dist = ask(RIDGE, rows.X, rows.y, 1)[0](rows.X_test)
    assert found["metrics"] == judged(rows.y_test, dist)
    assert (found["n_train"], found["n_test"]) == (480, 120)
    ours = on_tables.SECTION.run(Cell(NOW, "hitters", 1, FIXED, "tables"), None)["metrics"]
    model = ask(FIXED, rows.X, rows.y, 1)[1]
    assert ours["relevance_sum"] == np.sum(model.relevance_)
    assert ours["relevance_largest"] == np.max(model.relevance_)


def test_a_cell_of_the_shift(table):
    found = shift.SECTION.run(Cell(NOW, "hitters", 3, RIDGE, "shift"), None)
    frame, y = mixed()
    _, train, test = shift.beyond_top(frame, 3)
    z = standardised(y[test], ask(RIDGE, frame.iloc[train], y[train], 3)[0](frame.iloc[test]))
    assert found["metrics"]["off"] == np.mean(np.abs(z) > 5)
    assert found["column"] == "number"


def test_cells_of_data_made_up():
    found = beyond.SECTION.run(Cell(NOW, "exp x", 1, GP, "beyond"), None)["metrics"]
    X, y = beyond.seen("exp x", 1)
    dist = ask(GP, X, y, 1)[0](pd.DataFrame({"x": [1.5, 3.0]}))
    assert found["z at 3"] == abs(np.exp(3.0) - dist.mean[1]) / dist.std[1]
    cell = Cell(NOW, outliers.FRIEDMAN, 1, RIDGE, "outliers")
    moved = outliers.SECTION.run(cell, None)["metrics"]
    assert moved["rmse, moved by 0"] < moved["rmse, moved by 100"] < moved["rmse, moved by 1e+06"]
    rows = made_up.friedman(300, 1)
    error = ask(RIDGE, rows.X, rows.y, 1)[0](rows.X_test).mean - rows.y_test
    assert moved["rmse, moved by 0"] == np.sqrt(np.mean(error**2)) / np.std(rows.y)
    few = few_rows.SECTION.run(Cell(NOW, "4 rows", 1, RIDGE, "few"), None)
    assert few["n_train"] == 4
    assert 0 < few["metrics"]["coverage95"] <= 1
    assert few["metrics"]["worst_z"] > few["metrics"]["median_std"]


def test_an_error_of_weights_is_a_result(monkeypatch):
    given = []

    def failing(system, X, y, seed, sample_weight):
        given.append(sample_weight)
        return 1 / 0

    monkeypatch.setattr(weights, "ask", failing)
    found = weights.SECTION.run(Cell(NOW, "all one by n", 1, FIXED, "weights"), None)
    assert (found["metrics"], found["error"]) == ({}, "ZeroDivisionError")
    assert given[0].sum() == 1.0
    weights.SECTION.run(Cell(NOW, "no weights", 1, FIXED, "weights"), None)
    assert given[1] is None


def test_a_split_of_yacht(directory):
    found = yacht.SECTION.run(Cell(NOW, "yacht", 2, FIXED, "yacht"), str(directory))
    assert (found["n_train"], found["n_test"]) == (36, 4)


# what is asked for


def test_cells_are_chosen_by_section_set_and_split():
    cells = EXPERIMENT.asked(Options(protocols=("yacht",), splits=(7,)))
    assert {(c.set, c.split, c.protocol) for c in cells} == {("yacht", 7, "yacht")}
    cells = EXPERIMENT.asked(Options(sets=("ames",), systems=(GP,)))
    assert [(c.protocol, c.split) for c in cells] == [("shift", s) for s in (1, 2, 3)]
    assert not any(c.set == ALL_ROWS for c in EXPERIMENT.asked(Options()))
    cells = EXPERIMENT.asked(Options(sets=(ALL_ROWS,), splits=(1,)))
    assert {c.system for c in cells} == {"tnkm", RIDGE, BOOSTED}
    with pytest.raises(InputError, match="trust has no set 'mars'"):
        EXPERIMENT.asked(Options(sets=("mars",)))
    assert {c.experiment for c in BEFORE.asked(Options(quick=True))} == {EARLIER}
    assert {c.protocol for c in EXPERIMENT.asked(Options())} == set(SECTIONS)


# the page


def test_a_table_holds_if_chance_allows_it():
    assert on_tables.held([record("tables", "a", "tnkm", coverage95=0.95)])
    assert on_tables.held([record("tables", "a", "tnkm", coverage95=0.925)])  # 1000 rows
    assert not on_tables.held([record("tables", "a", "tnkm", coverage95=0.90)])
    assert not on_tables.held([record("tables", "a", "tnkm", coverage95=0.99)])
    many = [record("tables", "a", "tnkm", split=s, coverage95=0.925) for s in range(1, 10)]
    assert not on_tables.held(many)


def verdicts(section, *records):
    return {(v.promise, v.who): v for v in section.verdicts(records)}


def test_verdicts_of_tables():
    who = "tensorlace, 2 s"
    found = verdicts(
        on_tables.SECTION,
        record("tables", "a", "tnkm 2 s", coverage95=0.8, beyond10=0.003, worst_z=12.0, crps=1.1),
        record("tables", "b", "tnkm 2 s", crps=0.9),
        record("tables", "a", RIDGE),
        record("tables", "b", RIDGE),
        record("tables", "b", "tnkm 2 s", EARLIER, crps=0.5),
        record("tables", ALL_ROWS, "tnkm", rmse=8.0),
        record("tables", ALL_ROWS, BOOSTED, rmse=7.4),
    )
    cover = found[on_tables.COVERAGE, who]
    assert cover.figure.startswith("on 1 of 2 tables, sampling error allowed for; least 0.800 (a)")
    assert cover.figure.endswith("all rows together 0.875")
    assert not cover.kept
    assert found[on_tables.COVERAGE, f"{who}, before"].kept
    assert found[on_tables.FAR_ROWS, who].figure == "3 of 2,000 rows; worst 12 (a, seed 1)"
    worse = found[on_tables.NO_WORSE, who]
    assert worse.figure == "worse on 1 of 2 drawings; worst 1.1 times (a, seed 1); median 1.000"
    assert not worse.kept
    assert found[on_tables.NO_WORSE, f"{who}, before"].kept
    assert found[on_tables.NO_RUNAWAY, who].kept
    flights = found[on_tables.FLIGHTS, "tensorlace, default"]
    assert (flights.figure, flights.kept) == ("8 beside 7.4 minutes", True)
    assert found[on_tables.IN_TIME, who].kept


def test_verdicts_of_the_other_sections():
    who, shares = "tensorlace, rank 4", (("a", 0.2), ("b", 0.7), ("c", 0.9))
    found = verdicts(
        shift.SECTION,
        *(record("shift", s, FIXED, coverage95=c, off=0.1) for s, c in shares),
        record("shift", "a", GP, off=0.2),
    )
    assert found[shift.HOLDS, who].figure == "median 0.700 of 3 tables; least 0.200 (a)"
    assert not found[shift.HOLDS, who].kept
    assert (
        found[shift.RARELY_OFF, who].figure == "10.00% of the rows beside 20.00%, means of 1 cells"
    )
    assert found[shift.RARELY_OFF, who].kept
    sixth = [
        record("beyond", s, FIXED, **{"z at 1.5": z, "z at 3": 7}) for s, z in (("a", 4), ("b", 9))
    ]
    near, far = verdicts(beyond.SECTION, *sixth).values()
    assert (near.figure, near.kept) == ("1 of 2 fits; worst 9 std", False)
    assert far.figure == "2 of 2 fits; worst 7 std"
    moved = {"rmse, moved by 0": 0.2, "rmse, moved by 100": 1.8, "rmse, moved by 1e+06": 0.208}
    (one,) = verdicts(outliers.SECTION, record("outliers", "airfoil", FIXED, **moved)).values()
    assert (one.figure, one.kept) == ("most 1.04 times (airfoil); median 1.04 times, 1 cells", True)
    few = [record("few", s, FIXED, coverage95=c) for s, c in (("2 rows", 0.8), ("3 rows", 0.95))]
    (one,) = verdicts(few_rows.SECTION, *few).values()
    assert (one.figure, one.kept) == ("least 0.800 (2 rows); worst 4 std", False)
    plain = record("weights", "no weights", FIXED)
    small = record("weights", "all 1e-6", FIXED, coverage95=0.94, rmse=3.0)
    (one,) = verdicts(weights.SECTION, plain, small).values()
    said = "least 0.940 (all 1e-6); RMSE up to 3 times; 0 of 1 fits failed"
    assert (one.figure, one.kept) == (said, False)
    failed = record("weights", "all one by n", FIXED, error="ZeroDivisionError")
    (one,) = verdicts(weights.SECTION, plain, failed).values()
    assert (one.figure, one.kept) == ("1 of 1 fits failed", False)
    shares = {"relevance_sum": 12.5, "relevance_largest": 12.0}
    (one,) = verdicts(relevance.SECTION, record("tables", "a", FIXED, **shares)).values()
    assert one.figure.startswith("above one on 1 of 1 tables; largest sum 12.5 (a), largest of")
    splits = [
        record("yacht", "yacht", "tnkm", split=s, coverage95=c) for s, c in ((1, 0.9), (2, 1))
    ]
    (one,) = verdicts(yacht.SECTION, *splits).values()
    assert one.figure == "0.950 of 2,000 rows of 2 splits (range 0.940 to 0.959)"
    assert one.kept


def test_the_page_says_what_is_missing():
    text = EXPERIMENT.markdown([])
    assert "Nothing is measured yet." in text
    assert text.count("Not measured yet: ") == len(SECTIONS)
    assert "tensorlace, default 100 of 100 cells" in text
    text = EXPERIMENT.markdown([record("yacht", "yacht", "tnkm")])
    assert "tensorlace, default 99 of 100 cells" in text
    text = EXPERIMENT.markdown([record("yacht", "yacht", "tnkm", EARLIER)])
    assert "tensorlace, default 100 of 100 cells" in text
    assert "| tensorlace, default, before | 1 |" in text


def test_normal_errors_are_standardised():
    dist = Normal([1.0, 2.0], 3.0, 4.0)
    np.testing.assert_allclose(standardised(np.array([6.0, -8.0]), dist), [1.0, -2.0], rtol=1e-15)
