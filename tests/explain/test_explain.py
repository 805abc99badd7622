"""Relevance, effects and the summary, against brute force over rows and against draws."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tensorlace import EffectsDisplay, InputError, Periodic, TNKMRegressor
from tensorlace.explain import averaged_response
from tensorlace.explain.effects import effects_of
from tensorlace.explain.relevance import relevance_of
from tensorlace.machines.noise import Noise
from tensorlace.predictive.checks import check
from tensorlace.predictive.distributions import Normal
from tensorlace.sources import ArraySource
from tensorlace.sources.reference_rows import ReferenceRows, gather_reference_rows
from tests.helpers.models import with_ensemble, with_record

RNG = np.random.default_rng(7)
N = 160


def frame(n, rng):
    start = np.datetime64("2025-03-01")
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, n),
            "shop": rng.choice(["north", "south", "west"], n),
            "hour": rng.uniform(0, 24, n),
            "noise": rng.standard_normal(n),
            "day": start + rng.integers(0, 90, n).astype("timedelta64[D]"),
        }
    )
    lift = table["shop"].map({"north": 0.0, "south": 1.0, "west": 3.0}).to_numpy()
    y = 100.0 + 0.2 * table["age"].to_numpy() * (1 + 0.2 * lift) + np.sin(table["hour"] / 24 * 6.28)
    table.loc[rng.choice(n, n // 10, replace=False), "age"] = np.nan
    return table, np.asarray(y) + 0.3 * rng.standard_normal(n)


FRAME, FRAME_Y = frame(N, RNG)
X = RNG.uniform(-1.0, 1.0, (N, 3)) @ np.array([[1.0, 0.6, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
Y = 50.0 + 4.0 * (np.sin(2.0 * X[:, 0]) + X[:, 0] * X[:, 1]) + 0.4 * RNG.standard_normal(N)


def fitted(table, y, *, weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"rank": 2, "n_basis": 4, "random_state": 0, "max_sweeps": 60, **options}
        return TNKMRegressor(**options).fit(table, y, weight)


MODELS = {
    "plain": {},
    "members": {"n_members": 3},
    "additive": {"additive": True},
    "rotated": {"rotate": True},
    "last": {"curvature": "last"},
    "block": {"curvature": "block", "prior_groups": "column_order"},
    "sampled": {"predictive": "sampled"},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return fitted(X, Y, **MODELS[request.param])


@pytest.fixture(scope="module")
def mixed():
    return fitted(FRAME, FRAME_Y, columns={"hour": Periodic(24)}, n_members=2, additive=True)


def brute(model, table, d, value):
    """Joint draws of the average function, and its mean, row by row, in units of y."""
    moved = model.fitted_model().encode(table).copy()
    moved[:, d] = value
    target = model.machines_[0].target
    means, draws = [], []
    for k, machine in enumerate(model.machines_):
        means.append(machine.mean(moved).mean())
        f = machine.functions(moved, 4000, np.random.default_rng(k), linearized=True)
        draws.append(target.location + target.scale * f.mean(axis=0))
    return model.weights_ @ means, np.concatenate(draws)


# --- effects ---


@pytest.mark.parametrize("d", [0, 2])
def test_effects_are_averages_over_rows(model, d):
    grid = np.array([-0.7, 0.1, 0.9])
    found = model.partial_effects(d, grid, method="alone")
    assert np.array_equal(found.grid, grid)
    for k, value in enumerate(grid):
        mean, draws = brute(model, X, d, value)
        assert found.mean[k] == pytest.approx(mean, rel=1e-11)
        assert found.std[k] == pytest.approx(draws.std(), rel=0.06)
        assert found.lower[k] == pytest.approx(np.quantile(draws, 0.05), abs=0.25 * found.std[k])
        assert found.upper[k] == pytest.approx(np.quantile(draws, 0.95), abs=0.25 * found.std[k])


@pytest.mark.parametrize("d", [0, 2])
def test_effects_are_averages_of_what_support_holds(model, d):
    """Where most rows are beyond what training rows have shown, and values beyond the range."""
    tight = [
        replace(m, support=replace(m.support, low=-0.5, high=0.6, largest=0.5 * m.support.largest))
        for m in model.machines_
    ]
    held = with_ensemble(model, machines=tuple(tight))
    grid = np.array([-1.2, 0.3, 2.5])
    found, bare = (m.partial_effects(d, grid, method="alone") for m in (held, model))
    for k, value in enumerate(grid):
        mean, draws = brute(held, X, d, value)
        assert found.mean[k] == pytest.approx(mean, rel=1e-11)
        assert found.std[k] == pytest.approx(draws.std(), rel=0.06)
    assert np.max(np.abs(found.mean - bare.mean)) > 0.01 * Y.std()
    assert np.max(found.std / bare.std) > 1.2


def test_what_support_holds_is_seen_on_fewer_rows_where_that_is_dear(monkeypatch):
    machine = fitted(X, Y).machines_[0]
    held = replace(machine, support=replace(machine.support, low=-0.5, high=0.6))
    monkeypatch.setattr(averaged_response, "_HELD_WORK", 1)
    rows, moved = ReferenceRows(X, np.full(N, 1.0 / N)), X.copy()
    moved[:, 0] = 0.3
    found, _ = averaged_response.averaged_response(held, rows, 0, np.array([0.3]))
    before, after = (m.target(m.mean(moved)) for m in (machine.without_support(), held))
    change = after - before
    assert found[0] == pytest.approx(before.mean() + change[:64].mean(), rel=1e-11)
    assert abs(change[:64].mean() - change.mean()) > 1e-6  # all rows would say something else


@pytest.mark.parametrize("column", ["age", "shop", "hour", "day"])
def test_effects_of_any_kind_of_column(mixed, column):
    d = list(FRAME.columns).index(column)
    found = mixed.partial_effects(column, n_points=5, method="alone")
    codes = mixed.model_.encoding.codes[d](np.asarray(found.grid))
    for k in (0, len(found) - 1):
        mean, draws = brute(mixed, FRAME, d, codes[k])
        assert found.mean[k] == pytest.approx(mean, rel=1e-11)
        assert found.std[k] == pytest.approx(draws.std(), rel=0.08)
    assert found.column == column
    assert found.kind == mixed.kinds_[column]
    assert np.all(found.lower <= found.mean)
    assert np.all(found.mean <= found.upper)


def test_grids_stand_as_in_the_table(mixed):
    def alone(column, *args, **options):
        return mixed.partial_effects(column, *args, method="alone", **options)

    assert alone("shop").grid.tolist() == ["north", "south", "west"]
    day = alone("day", n_points=10).grid
    assert day.dtype.kind == "M"
    assert day[0] == FRAME["day"].min()
    assert day[-1] == FRAME["day"].max()
    hour = alone("hour")
    assert (hour.grid[0], hour.grid[-1], len(hour)) == (0.0, 24.0, 50)
    assert hour.mean[0] == pytest.approx(hour.mean[-1], rel=1e-12)
    age = alone(0, n_points=7).grid
    np.testing.assert_allclose(age, np.linspace(FRAME["age"].min(), FRAME["age"].max(), 7))
    given = alone("shop", grid=["west", None, "north"])
    assert given.grid.tolist() == ["west", None, "north"]
    assert given.mean[0] > given.mean[2]
    assert given.counts.tolist() == [N] * 3
    assert given.method == "alone"


@pytest.mark.parametrize("method", ["accumulated", "alone"])
def test_few_distinct_numbers_and_missing_categories(method):
    table, y = FRAME.copy(), FRAME_Y
    table["flag"] = np.arange(N) % 2
    table.loc[:20, "shop"] = None
    model = fitted(table, y)
    assert model.partial_effects("flag", method=method).grid.tolist() == [0.0, 1.0]
    shops = model.partial_effects("shop", method=method)
    assert shops.grid.tolist() == ["north", "south", "west", None]
    numbers = fitted(np.column_stack([X[:, 0], np.arange(N) % 3]), Y)
    assert numbers.partial_effects(1, method=method).grid.tolist() == [0.0, 1.0, 2.0]


def test_values_never_seen_widen_the_band(mixed):
    known = mixed.partial_effects("shop", grid=["north"], method="alone")
    novel = mixed.partial_effects("shop", grid=["nowhere"], method="alone")
    assert novel.std[0] > 2.0 * known.std[0]
    moved = FRAME.assign(shop="nowhere")
    _, draws = brute(mixed, moved, 1, -1.0)
    assert novel.std[0] == pytest.approx(draws.std(), rel=0.08)


def test_weights_count_as_repetitions():
    times = np.random.default_rng(0).integers(0, 3, N)
    once = fitted(X, Y, weight=times.astype(float))
    rows = gather_reference_rows(ArraySource(X, Y, times.astype(float)))
    assert rows.weight.sum() == pytest.approx(1.0, rel=1e-14)
    repeated = X.repeat(times, axis=0)
    moved = repeated.copy()
    moved[:, 1] = 0.3
    found = once.partial_effects(1, grid=[0.3], method="alone").mean[0]
    assert found == pytest.approx(once.predict(moved).mean(), rel=1e-11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("height",), "column 'height' does not exist: choose from 'age'"),
        ((7,), "column 7 does not exist: the table has 5 columns"),
        (("age", []), "grid has no values"),
        (("age", [[1.0]]), "grid has shape"),
        (("age", None, 1), "n_points=1 is too few"),
        (("age", None, 5, 1.0), "coverage=1 is no probability"),
        (("age", None, 5, 0.9, "far"), "method='far' is unknown: choose from accumulated, alone"),
        (("age", [30.0, 99.0, None]), "2 of 3 values of grid are where no row"),
        (("shop", ["nowhere"]), "1 of 1 values of grid are where no row"),
        (("shop", [None]), "1 of 1 values of grid are where no row"),
    ],
)
def test_bad_requests_are_refused(mixed, arguments, message):
    with pytest.raises(InputError, match=message):
        mixed.partial_effects(*arguments)


@pytest.fixture(scope="module")
def sharp():
    """Members that count differently from row to row, and not by their overall weights."""
    one, two, three = (
        fitted(X, Y, rank=3, n_basis=6, target_scale="identity"),
        fitted(X[:40], Y[:40], rank=1, n_basis=3, additive=True),
        fitted(X, Y, rank=1, n_basis=1, basis="legendre", warp="standardise"),
    )
    return with_ensemble(
        one,
        machines=tuple(
            replace(m.machines_[0], target=one.machines_[0].target) for m in (one, two, three)
        ),
        weights=np.array([0.2, 0.2, 0.6]),
        sharp=True,
        noise=Noise(factor=0.7, degrees=5.0, shrink=0.9),
    )


@pytest.mark.parametrize("d", [0, 1, 2])
def test_effects_are_averages_of_what_is_predicted(sharp, d):
    grid = np.linspace(-1.2, 1.2, 5)
    expected = []
    for value in grid:
        moved = X[:100].copy()
        moved[:, d] = value
        expected.append(sharp.predict(moved).mean())
    rows = ReferenceRows(X[:100], np.full(100, 0.01))
    mean, std, lower, upper = effects_of(sharp.model_.ensemble, rows, d, grid, 0.9)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    assert np.all((lower < mean) & (mean < upper) & (std > 0.0))
    # members by their overall weights would say something else
    plain = replace(sharp.model_.ensemble, sharp=False)
    away = effects_of(plain, rows, d, grid, 0.9)[0] - expected
    assert d == 2 or np.max(np.abs(away)) > 0.1


def test_effects_of_many_rows_are_close_to_averages_of_what_is_predicted(sharp):
    """Shares are followed on 128 of 160 rows, so that something is left to chance."""
    moved = X.copy()
    moved[:, 0] = 0.8
    found = sharp.partial_effects(0, grid=[0.8], method="alone").mean[0]
    assert found == pytest.approx(sharp.predict(moved).mean(), abs=0.002 * Y.std())


def test_relevance_is_that_of_what_is_predicted(sharp):
    """Against all pairs of rows and both orders of the two columns; the third says nothing."""
    bare, rows = with_record(sharp, relevance=None), X.copy()
    rows[:, 2] = 0.1
    rows[:, 0] = RNG.permutation(rows[:, 0])  # no column follows another
    model = replace(bare.fitted_model(), rows=ReferenceRows(rows, np.full(N, 1.0 / N)))
    f = bare.predict(rows)
    expected = np.zeros(3)
    for m in range(N):
        change = f[m] - f
        for d in range(2):
            moved = rows.copy()
            moved[:, d] = rows[m, d]
            half = np.clip(bare.predict(moved), f.min(), f.max())
            expected[d] += np.mean(change * (half - f)) / 4
            expected[1 - d] += np.mean(change * (f[m] - half)) / 4
    found = relevance_of(model)
    assert found.sum() == pytest.approx(f.var() / Y.var(), rel=1e-12)
    np.testing.assert_allclose(found, expected / N / Y.var(), atol=0.02)
    assert min(expected[:2]) > 0.1 * N * Y.var()
    shares = sharp.model_.ensemble.shares(X)
    np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-14)
    assert shares[0].min() > 0.5  # the one member that has learnt, whatever its weight


# --- relevance ---


def test_relevance_sums_to_what_is_explained(model, mixed):
    for fit, table, y in ((model, X, Y), (mixed, FRAME, FRAME_Y)):
        share = fit.relevance_
        assert share.min() >= 0.0
        assert share.sum() == pytest.approx(
            fit.fitted_model().ensemble.mean(fit.fitted_model().encode(table)).var() / y.var(),
            rel=1e-9,
        )
        assert share.sum() < 1.0


def test_relevance_finds_the_columns_that_matter(model, mixed):
    assert model.relevance_.shape == (3,)
    assert model.relevance_[0] > model.relevance_[1] > 5 * model.relevance_[2]
    shares = dict(zip(FRAME.columns, mixed.relevance_, strict=True))
    assert max(shares["noise"], shares["day"]) < 0.1
    assert min(shares["age"], shares["shop"]) > 0.25  # 0.6 and 0.3 in truth
    assert np.array_equal(mixed.relevance_, mixed.relevance_)


def test_noise_has_no_relevant_column():
    y = np.random.default_rng(3).standard_normal(N)
    assert np.all(fitted(X, y, rank=1).relevance_ < 0.1)
    assert np.all(fitted(X, np.full(N, 2.0), rank=1).relevance_ < 1e-12)


def test_linear_models_have_textbook_indices():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((400, 2))
    y = table @ [2.0, 1.0] + 1e-3 * rng.standard_normal(400)
    model = fitted(table, y, basis="legendre", warp="standardise", n_basis=2, additive=True)
    parts = table * [2.0, 1.0]  # what they have in common by chance is split
    expected = np.cov(parts.T).sum(axis=0) / np.cov(parts.T).sum()
    np.testing.assert_allclose(model.relevance_, expected, atol=0.02)


def test_a_model_that_is_not_fitted_has_no_relevance():
    assert not hasattr(TNKMRegressor(), "relevance_")
    with pytest.raises(Exception, match="not fitted"):
        TNKMRegressor().partial_effects(0)


# --- the rows that are kept ---


def test_background_is_a_bounded_part_of_the_rows():
    table = np.arange(20_000.0).reshape(-1, 2)
    source = ArraySource(table, table[:, 0])
    few = gather_reference_rows(source, 500)
    assert few.X.shape == (500, 2)
    assert len(np.unique(few.X[:, 0])) == 500
    assert abs(few.X[:, 0].mean() - 10_000) < 1_000
    assert np.array_equal(gather_reference_rows(source, 100).X, few.X[:100])
    assert np.array_equal(
        few.part(100).weight, np.full(100, 1.0 / 500) / np.full(100, 1 / 500).sum()
    )
    assert len(gather_reference_rows(ArraySource(table[:50], table[:50, 0])).X) == 50
    even = ReferenceRows(table[:100], np.arange(100.0) / 4950).spread(12)
    assert np.array_equal(even.X, table[np.arange(12) * 9])
    np.testing.assert_allclose(even.weight, np.arange(12) * 9 / (66 * 9), rtol=1e-14)
    assert few.spread(500) is few


def test_background_is_the_same_from_disk(tmp_path):
    path = tmp_path / "rows.csv"
    table = pd.DataFrame({"a": np.arange(3000.0), "b": np.arange(3000.0) % 7, "y": 1.0})
    table.to_csv(path, index=False)
    from tensorlace.sources import open_source

    memory = gather_reference_rows(
        ArraySource(table[["a", "b"]].to_numpy(), table["y"].to_numpy()), 64
    )
    disk = gather_reference_rows(open_source(path, "y"), 64)
    assert np.array_equal(disk.X, memory.X)


# --- summary and picture ---


def test_summary_fits_a_terminal_and_says_what_was_found(mixed):
    text = str(mixed.summary())
    assert max(map(len, text.splitlines())) <= 80
    for word in (
        "noise std",
        "log evidence",
        "effective parameters",
        "Relevance",
        "weight",
        "rank",
    ):
        assert word in text
    bars = [line for line in text.partition("Relevance")[2].splitlines()[1:] if "%" in line]
    order = np.argsort(-mixed.relevance_)
    assert [line.split()[0] for line in bars] == [FRAME.columns[d] for d in order]
    assert f"{1 / np.sqrt(mixed.noise_precision_):.4g} in units of y" in text
    assert mixed.summary()._repr_html_().startswith("<pre>")
    assert pickle.loads(pickle.dumps(mixed)).summary() == mixed.summary()


def test_summary_of_one_member(model):
    text = str(model.summary())
    machine = model.machines_[0]
    assert f"{machine.fit.determined:.1f} of" in text or len(model.machines_) > 1
    assert ("Columns were rotated" in text) == (machine.columns.rotation is not None)
    if len(model.machines_) == 1:
        assert "cosine" in text
        assert "mixed" in text


def test_summary_says_how_fits_ended():
    few = fitted(X, Y, n_members=3, prior_groups="column_order", max_sweeps=12)
    text = str(few.summary())
    assert max(map(len, text.splitlines())) <= 80
    head, *lines = text.partition("How their fits ended\n")[2].splitlines()[:4]
    assert head.split() == ["share", "steps", "gradient", "decrement", "precisions"]
    expected = []
    for fit in (machine.fit for machine in few.machines_):
        found = fit.convergence
        ended = f"0.33 {fit.n_steps} {fit.gradient:.1e} {found.decrement:.2g}"
        expected.append(f"{ended} {found.n_unsettled} of {found.n_precisions} by")
    shown = [" ".join(line.split()).rpartition(" by ") for line in lines]
    assert sorted(f"{ended} by" for ended, _, _ in shown) == sorted(expected)
    done = str(fitted(X, Y, noise_precision=4.0, prior_precision=1.0).summary())
    done = " ".join(done.split())
    assert "as nothing left to gain" in done
    assert "precisions settled" in done
    known = few.machines_[0].fit
    old = replace(known, convergence=None)
    ensemble = few.model_.ensemble
    machines = tuple(replace(m, fit=old) for m in ensemble.machines)
    model = replace(few.model_, ensemble=replace(ensemble, machines=machines))
    assert "How their fits ended" not in str(few.with_model(model).summary())


def test_summary_remarks():
    lines = str(fitted(X, Y, max_sweeps=2).summary())
    assert "The MAP was not reached" in lines
    poly = fitted(X, Y, basis="legendre", warp="standardise")
    wrong = check(np.arange(100.0), Normal(np.zeros(100), 0.0, 1.0))
    text = str(with_record(poly, check=wrong).summary())
    assert "polynomials" in text
    assert " ".join(("-", *str(wrong).split())) in " ".join(text.split())
    noise = fitted(X, np.random.default_rng(3).standard_normal(N), rank=1, prior_precision=1e6)
    assert "next to nothing" in str(noise.summary())


def test_long_names_and_many_columns_are_cut():
    rng = np.random.default_rng(0)
    names = [f"a very long name of a column with number {k}" for k in range(25)]
    table = pd.DataFrame(rng.standard_normal((60, 25)), columns=names)
    text = str(fitted(table, table[names[0]], rank=1, n_basis=2, max_sweeps=5).summary())
    assert max(map(len, text.splitlines())) <= 80
    assert "and 5 columns below" in text


def test_display(mixed):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    before = set(mixed.__dict__)
    display = EffectsDisplay.from_estimator(mixed)
    assert len(display.axes_) == 5
    best = display.axes_[0]
    assert best.get_xlabel() == FRAME.columns[np.argmax(mixed.relevance_)]
    chosen = EffectsDisplay.from_estimator(mixed, FRAME, columns=["shop", 0])
    labels = [tick.get_text() for tick in chosen.axes_[0].get_xticklabels()]
    assert labels == ["north", "south", "west"]
    line = chosen.axes_[1].lines[0]
    assert np.array_equal(line.get_ydata(), mixed.partial_effects(0).mean)
    rug = chosen.axes_[1].lines[1].get_xdata()
    assert len(rug) == FRAME["age"].notna().sum()
    assert len({axes.get_ylim() for axes in chosen.axes_}) == 1
    low, high = chosen.axes_[0].get_ylim()
    for e in chosen.effects:
        assert low < e.mean.min() <= e.mean.max() < high
    left, right = chosen.axes_[1].get_xlim()
    assert right - left < 1.11 * np.ptp(chosen.effects[1].grid)
    _, axes = plt.subplots(1, 2)
    assert EffectsDisplay.from_estimator(mixed, columns=[0, 2], ax=axes).axes_[0] is axes[0]
    with pytest.raises(InputError, match="1 axes for 2 columns"):
        EffectsDisplay.from_estimator(mixed, columns=[0, 2], ax=axes[0])
    with pytest.raises(InputError, match="columns is empty"):
        EffectsDisplay.from_estimator(mixed, columns=[])
    assert set(mixed.__dict__) == before
    plt.close("all")
