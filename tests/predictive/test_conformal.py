"""Calibrated intervals keep their coverage, whatever the model got wrong."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone

from tensorlace import InputError, MisspecificationWarning, Mixture, Normal, TNKMRegressor
from tensorlace.predictive.conformal import Calibration
from tensorlace.predictive.quantile_residuals import residuals

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {
    "noise": "gaussian",
    "rank": 3,
    "n_basis": 5,
    "max_sweeps": 60,
    "tol": 1e-3,
    "random_state": 0,
    "n_jobs": 1,
}


def problem(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    noise = (0.05 + 0.3 * abs(X[:, 0])) * rng.standard_t(3, size=n)
    return X, np.sin(X[:, 0]) * (1.0 + X[:, 1]) + noise


@cache
def learnt():
    """Some fitted model, to hold a calibration."""
    return TNKMRegressor(**QUICK).fit(*problem(20, 0)).model_


class Fixed(TNKMRegressor):
    """Wrong on purpose: too narrow, biased, in two modes or one."""

    def __init__(self, mixed=False):
        super().__init__()
        self.mixed = mixed
        self.model_ = learnt()

    def predict_dist(self, X):
        mean = 2.0 * X[:, 0] - 0.3
        if self.mixed:
            return Mixture(np.stack([mean - 0.5, mean + 1.0]), 0.0, 0.2, [0.7, 0.3])
        return Normal(mean, 0.0, np.full(len(X), 0.4))


def rows(n, rng):
    X = rng.normal(size=(n, 1))
    return X, 2.0 * X[:, 0] + rng.exponential(size=n) - 1.0


@pytest.fixture(scope="module")
def fitted():
    return TNKMRegressor(**QUICK).fit(*problem(150, 0))


@pytest.fixture
def machine(fitted):
    return pickle.loads(pickle.dumps(fitted))


# the table ---------------------------------------------------------------------------------------


def test_ranks_are_those_of_split_conformal_prediction():
    rng = np.random.default_rng(0)
    for n in (9, 19, 20, 100, 999, 1365):
        z = rng.normal(size=n)
        ordered = np.concatenate([[-np.inf], np.sort(z), [np.inf]])
        table = Calibration.of(z)
        for percent in (1, 2, 5, 10, 20, 30, 45):  # whole percents, so that ranks are exact
            low = (n + 1) * percent // 100
            found = table.residual([percent / 100, 1 - percent / 100])
            assert found.tolist() == [ordered[low], ordered[n + 1 - low]]


def test_thinned_table_errs_outwards_by_little():
    z = np.random.default_rng(0).normal(size=50_000)
    table = Calibration.of(z)
    assert table.z.size + table.below.size + table.upto.size <= 4096
    ordered = np.sort(z)
    for q in (0.0004, 0.003, 0.025, 0.2, 0.49):
        lower, upper = table.residual([q, 1 - q])
        below, above = np.mean(z < lower), np.mean(z > upper)
        assert lower <= ordered[int(np.floor(50_001 * q + 1e-9)) - 1]
        assert upper >= ordered[int(np.ceil(50_001 * (1 - q) - 1e-9)) - 1]
        assert q - 0.0013 < below <= q
        assert q - 0.0013 < above <= q


def test_levels_rise_and_the_middle_is_between():
    table = Calibration.of(np.random.default_rng(0).normal(size=40))
    levels = np.linspace(0.0, 1.0, 401)
    found = table.residual(levels)
    assert np.all(found[1:] >= found[:-1])
    assert np.isneginf(found[0])
    assert np.isposinf(found[-1])
    assert table.residual([0.5])[0] == pytest.approx(np.median(table.z))


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=50), rng.integers(0, 4, 50)
    weighted, repeated = Calibration.of(z, w.astype(float)), Calibration.of(np.repeat(z, w))
    levels = np.linspace(0.02, 0.98, 97)
    np.testing.assert_array_equal(weighted.residual(levels), repeated.residual(levels))
    assert weighted.std_factor == pytest.approx(repeated.std_factor)
    new = rng.normal(size=20)
    np.testing.assert_allclose(weighted.standardised(new), repeated.standardised(new))


# coverage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixed", [False, True])
def test_coverage_over_many_splits(mixed):
    rng = np.random.default_rng(5)
    model, levels, n, splits = Fixed(mixed), (0.5, 0.8, 0.9), 39, 40 if mixed else 80
    inside = {level: [] for level in levels}
    for _ in range(splits):
        model.calibrate(*rows(n, rng))
        X, y = rows(80, rng)
        for level in levels:
            lower, upper = model.predict_interval(X, level)
            inside[level].append(np.mean((lower <= y) & (y <= upper)))
    for level in levels:  # exact for n + 1 = 40; a split's coverage is a beta variable
        error = np.std(inside[level]) / np.sqrt(splits)
        assert abs(np.mean(inside[level]) - level) < 3.5 * error
        assert error < 0.02


def test_the_model_alone_does_not_cover():
    X, y = rows(4000, np.random.default_rng(0))
    lower, upper = Fixed().predict_interval(X, 0.9)
    assert np.mean((lower <= y) & (y <= upper)) < 0.8


def test_intervals_are_nested_quantiles_and_far_errors_stay_finite():
    rng = np.random.default_rng(0)
    X, y = rows(99, rng)
    model = Fixed(mixed=True).calibrate(X, 50.0 * y)
    levels = np.linspace(0.02, 0.98, 49)
    quantiles = model.predict_quantiles(X[:5], levels)
    assert np.all(np.isfinite(quantiles))
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    for coverage in (0.1, 0.5, 0.9, 0.96):
        lower, upper = model.predict_interval(X[:5], coverage)
        ends = model.predict_quantiles(X[:5], [(1 - coverage) / 2, (1 + coverage) / 2])
        np.testing.assert_array_equal(np.stack([lower, upper], axis=1), ends)


def test_as_mapie_does():
    from mapie import conformity_scores, regression

    class Mean(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.n_features_in_ = X.shape[1]
            return self

        def predict(self, X):
            return Fixed().predict_dist(X).mean

    rng = np.random.default_rng(0)
    (X, y), (new, _) = rows(199, rng), rows(10, rng)
    other = regression.SplitConformalRegressor(
        estimator=Mean().fit(X, y),
        confidence_level=[0.5, 0.8, 0.9],
        conformity_score=conformity_scores.AbsoluteConformityScore(sym=False),
        prefit=True,
    ).conformalize(X, y)
    theirs = other.predict_interval(new)[1]
    model = Fixed().calibrate(X, y)
    for k, coverage in enumerate((0.5, 0.8, 0.9)):
        ours = np.stack(model.predict_interval(new, coverage), axis=1)
        np.testing.assert_allclose(ours, theirs[:, :, k], rtol=1e-7)


# the estimator -----------------------------------------------------------------------------------


def test_calibrate_moves_intervals_and_nothing_else(machine):
    X = problem(20, 3)[0]
    mean, std = machine.predict(X, return_std=True)
    before = machine.predict_interval(X, 0.9), machine.sample_y(X, 3)
    held_out, y = problem(120, 1)
    assert machine.calibrate(held_out, y) is machine
    z = residuals(y, machine.predict_dist(held_out))
    assert machine.calibration_.std_factor == pytest.approx(np.sqrt(np.mean(z**2)))
    again, std_again = machine.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, again)
    np.testing.assert_array_equal(std, std_again)
    np.testing.assert_array_equal(before[1], machine.sample_y(X, 3))
    lower, upper = machine.predict_interval(X, 0.9)
    assert np.any(lower != before[0][0])
    assert machine.predict_quantiles(X, 0.5).shape == (20,)
    assert machine.predict_quantiles(X).shape == (20, 3)
    np.testing.assert_array_equal(
        machine.predict_quantiles(X, [0.0, 1.0]), [[-np.inf, np.inf]] * 20
    )
    copied = pickle.loads(pickle.dumps(machine)).predict_interval(X, 0.9)
    np.testing.assert_array_equal(copied, (lower, upper))
    machine.calibrate(None)
    np.testing.assert_array_equal(machine.predict_interval(X, 0.9), before[0])


def test_a_new_fit_forgets(machine):
    machine.calibrate(*problem(50, 1))
    assert not hasattr(clone(machine), "calibration_")
    machine.fit(*problem(60, 0))
    assert machine.calibration_ is None


def test_check_calibration_warns_before_and_not_after(machine):
    X, y = problem(800, 2)
    with pytest.warns(MisspecificationWarning, match=r"intervals hold .* mends intervals"):
        found = machine.check_calibration(X, y)
    assert found.contradicted
    machine.calibrate(*problem(400, 1))
    assert not machine.check_calibration(X, y).contradicted
    with pytest.warns(MisspecificationWarning, match="unlike those it was calibrated with"):
        machine.check_calibration(X, y + 3.0)


def test_checks_of_calibrated_quantiles_raise_no_false_alarm():
    rng = np.random.default_rng(0)
    model, alarms = Fixed(), 0
    for _ in range(60):
        model.calibrate(*rows(60, rng))
        alarms += model.check_calibration(*rows(300, rng)).contradicted
    assert alarms == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, X, y: m.calibrate(X), "y of the held-out rows is None"),
        (lambda m, X, y: m.calibrate(X, y[:-1]), "inconsistent numbers of samples"),
        (lambda m, X, y: m.calibrate(X, np.full(len(y), np.nan)), "y contains NaN"),
        (lambda m, X, y: m.calibrate(X, y, -np.ones(len(y))), "sample_weight is -1"),
        (lambda m, X, y: m.calibrate(X, y, np.zeros(len(y))), "sample_weight is zero in all"),
        (lambda m, X, y: m.calibrate(X, y).predict_interval(X, 1.5), "within \\(0, 1\\)"),
        (lambda m, X, y: m.calibrate(X, y).predict_quantiles(X, 1.5), "within \\[0, 1\\]"),
        (
            lambda m, X, y: m.calibrate(X, y).predict_interval(X, 0.99),
            "50 rows cannot calibrate a coverage of 0.99: ask for at most 0.9608, or calibrate "
            "with 199 rows",
        ),
    ],
)
def test_refusals(machine, call, words):
    with pytest.raises(ValueError, match=words):
        call(machine, *problem(50, 1))


def test_the_largest_coverage_works(machine):
    X, y = problem(39, 1)
    machine.calibrate(X, y)
    assert np.all(np.isfinite(machine.predict_interval(X, 0.95)))
    with pytest.raises(InputError, match="39 rows"):
        machine.predict_interval(X, 0.951)
