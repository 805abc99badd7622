"""Compact models: smaller, close, never surer than the full one."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensorlace import TNKMRegressor, load, save
from tensorlace.compact.compaction import compact, deviation, n_bytes
from tensorlace.compact.knots import turning_points
from tensorlace.compact.posterior_directions import Directions, exponents_of, rounded, widths_of
from tensorlace.errors import InputError

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (150, 3))
Y = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.05 * RNG.standard_normal(150)
FAR = RNG.uniform(-2, 2, (60, 3))


def fit(**params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        params = {"rank": 6, "n_basis": 10, "random_state": 0, "max_sweeps": 15, **params}
        return TNKMRegressor(**params).fit(X, Y)


@pytest.fixture(scope="module")
def model():
    return fit(n_members=6)


def test_small_models_are_left_alone(model):
    assert compact(model, n_bytes(model)) is model


def test_size_and_closeness(model):
    full = model.predict_dist(X)
    gaps = []
    for share in (0.02, 0.1, 0.4):
        small = compact(model, int(share * n_bytes(model)))
        assert n_bytes(small) <= share * n_bytes(model)
        assert small.weights_.sum() == pytest.approx(1.0, abs=1e-15)
        gaps.append(deviation(small.predict_dist(X), full))
    assert gaps[0].std > 10 * gaps[1].std  # the less room, the farther away
    assert len(small.machines_) == 6
    assert gaps[-1].largest_mean < 1e-12  # nothing but posteriors was touched
    assert gaps[-1].largest_std < 2e-3


@pytest.mark.parametrize("curvature", ["ggn", "block", "last", "diag"])
@pytest.mark.parametrize("size", [10, 4], ids=["more weights than rows", "fewer"])
def test_no_variance_falls_and_none_exceeds_the_prior(curvature, size):
    machine = fit(curvature=curvature, n_basis=size).machines_[0]
    exact, directions = machine.fit.posterior, Directions.of(machine, X)
    fine = replace(directions, widths=np.full_like(directions.widths, 3))
    phi = machine.columns.features(machine.columns.variables(np.concatenate([X[:40], FAR])))
    G = machine.fit.network.jacobian(phi, machine.fit.bayesian_cores)
    gamma = np.concatenate([machine.fit.gamma[d].ravel() for d in machine.fit.bayesian_cores])
    n = len(directions.gains)
    order = np.argsort(-directions.gains)
    before = exact.quad(G)
    for kept in (n, n // 2, n // 8, 0):
        which = np.zeros(n, dtype=bool)
        which[order[:kept]] = True
        now = fine.kept(which).quad(G)
        if kept == n:
            np.testing.assert_allclose(now, before, rtol=2e-5)
        assert np.all(now >= before * (1.0 - 2e-5))
        short = directions.kept(which).quad(G)
        np.testing.assert_allclose(short, now, rtol=0.05)  # as few bytes as rows do not notice
        before = now
    if curvature != "diag":  # whose numbers are few
        np.testing.assert_allclose(before, (1.0 / gamma) @ G**2, rtol=1e-12)


def test_compact_models_are_models(model, tmp_path):
    small = compact(model, 120_000)
    save(small, tmp_path / "small.tlace")
    save(model, tmp_path / "full.tlace")
    again = load(tmp_path / "small.tlace")
    for rows in (X, FAR):
        a, b = small.predict_dist(rows), again.predict_dist(rows)
        np.testing.assert_array_equal(a.std, b.std)
    assert n_bytes(again) == n_bytes(small)
    sizes = [(tmp_path / name).stat().st_size for name in ("small.tlace", "full.tlace")]
    # files keep doubles, and of a full model half of each triangle: less is saved than on a page
    assert sizes[0] < 0.7 * sizes[1]
    np.testing.assert_array_equal(small.relevance_, model.relevance_)
    assert len(small.partial_effects(0)) == 50
    assert small.model_.rows is not model.model_.rows


def test_mixture_with_its_own_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = TNKMRegressor(time_budget=1, noise="varying", random_state=0, n_jobs=1).fit(X, Y)
    small = compact(model, n_bytes(model) // 2)
    gap = deviation(small.predict_dist(X), model.predict_dist(X))
    assert gap.std < 0.05
    assert small.noise_.kind == model.noise_.kind


def test_too_little_room(model):
    with pytest.raises(InputError, match="max_bytes=100 is too little for one member"):
        compact(model, 100)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_whole_numbers(width):
    U = RNG.standard_normal((50, 8)) * 10.0 ** np.arange(-4, 4)
    U[:, 3] = 0.0
    R = rounded(U, width)
    numbers = np.ldexp(R, -exponents_of(U, width))
    np.testing.assert_array_equal(numbers, np.rint(numbers))
    assert np.abs(numbers).max() <= 2 ** (8 * width - 1) - 1
    assert np.all(np.abs(R - U) <= 1.001 * np.abs(U).max(axis=0) / 2 ** (8 * width - 1))
    np.testing.assert_array_equal(rounded(R, width), R)
    assert np.all(widths_of(R) <= width)
    assert widths_of(U + 1e-9) is None


def test_turning_points_bound_the_error():
    x = np.sort(RNG.uniform(size=500))
    lines = [(x, x**3), (x, np.sort(RNG.uniform(size=500)))]
    errors = []
    for most in (4, 20, 100, 1000):
        masks = turning_points(lines, most)
        assert sum(int(m.sum()) for m in masks) <= most
        gaps = [
            np.abs(np.interp(a, a[m], b[m]) - b).max()
            for (a, b), m in zip(lines, masks, strict=True)
        ]
        errors.append(max(gaps))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == 0.0
    assert errors[2] < 0.01


def test_warps_are_thinned_before_members_go():
    rng = np.random.default_rng(0)
    table = rng.uniform(size=(5000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TNKMRegressor(rank=2, n_basis=5, warp="quantile", max_sweeps=5, random_state=0)
        model.fit(table, table[:, 0] * table[:, 1] + 0.1 * rng.standard_normal(5000))
    small = compact(model, 20_000)
    assert n_bytes(model) > 120_000
    assert n_bytes(small) <= 20_000
    assert deviation(small.predict_dist(table), model.predict_dist(table)).largest_mean < 0.05
