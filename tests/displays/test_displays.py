"""Pictures show the numbers they should."""

import matplotlib

matplotlib.use("Agg")

from math import comb

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tensorlace import InputError, Normal, TNKMRegressor, displays, metrics
from tensorlace.displays import CalibrationDisplay, PredictiveDisplay, SpectrumDisplay
from tensorlace.displays.spectrum import eigenvalues
from tensorlace.laplace.posterior import LowRank

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {"rank": 3, "n_basis": 5, "max_sweeps": 60, "tol": 1e-3, "random_state": 0, "n_jobs": 1}


def problem(n, seed, columns=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, columns))
    return X, np.sin(X[:, 0]) * (1.0 + X[:, -1]) + 0.2 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return TNKMRegressor(**QUICK).fit(*problem(150, 0))


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# calibration -------------------------------------------------------------------------------------


def test_coverage_curve_is_that_of_the_metrics(fitted):
    X, y = problem(80, 1)
    display = CalibrationDisplay.from_estimator(fitted, X, y, name="model")
    dist = fitted.predict_dist(X)
    for level in (0.25, 0.5, 0.9):
        at = int(np.argmin(abs(display.nominal - level)))
        assert display.observed[at] == pytest.approx(metrics.coverage(y, dist, level))
    line = next(line for line in display.ax_.lines if line.get_label() == "model")
    np.testing.assert_allclose(line.get_ydata(), 100 * display.observed)
    assert labels(display.ax_) == ["95 % of right models, 80 rows", "right", "model"]
    assert display.figure_ is display.ax_.figure
    second = CalibrationDisplay.from_distribution(dist, y, name="same", ax=display.ax_)
    assert labels(second.ax_)[2:] == ["model", "same"]
    assert second.ax_.lines[-1].get_color() != line.get_color()


def test_calibrated_estimators_show_calibrated_coverage():
    model = TNKMRegressor(**QUICK, noise_precision=1e4).fit(*problem(100, 0))
    X, y = problem(300, 1)
    before = CalibrationDisplay.from_estimator(model, X, y)
    model.calibrate(*problem(300, 2))
    after = CalibrationDisplay.from_estimator(model, X, y)
    gaps = [np.max(abs(d.observed - d.nominal)) for d in (before, after)]
    assert gaps[0] > 0.4
    assert gaps[1] < 0.15


def test_pit_histogram_is_a_density_and_weights_count(fitted):
    X, y = problem(200, 1)
    w = np.arange(200.0)
    display = CalibrationDisplay.from_estimator(fitted, X, y, sample_weight=w, kind="pit")
    bars = [
        patch for patch in display.ax_.patches if patch.get_height() and patch.get_width() < 0.5
    ]
    area = sum(bar.get_width() * bar.get_height() for bar in bars)
    assert area == pytest.approx(1.0)
    pit = metrics.pit(y, fitted.predict_dist(X))
    first = w[pit < bars[0].get_width()].sum() / w.sum()
    assert bars[0].get_height() * bars[0].get_width() == pytest.approx(first)


def test_the_band_is_binomial():
    y = np.linspace(-2.0, 2.0, 30)
    display = CalibrationDisplay.from_distribution(Normal(np.zeros(30), 0.0, 1.0), y)
    band = display.ax_.collections[0].get_paths()[0].vertices
    at = band[np.isclose(band[:, 0], 80.0), 1] * 30 / 100
    cdf = np.cumsum([comb(30, k) * 0.8**k * 0.2 ** (30 - k) for k in range(31)])
    assert at.min() == pytest.approx(np.argmax(cdf >= 0.025))
    assert at.max() == pytest.approx(np.argmax(cdf >= 0.975))


# predictions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["auto", "observed", "sorted"])
def test_predictions_say_how_many_are_inside(fitted, kind):
    X, y = problem(50, 1)
    display = PredictiveDisplay.from_estimator(fitted, X, y, coverage=0.8, kind=kind)
    lower, upper = fitted.predict_interval(X, 0.8)
    share = 100 * np.mean((lower <= y) & (y <= upper))
    assert display.ax_.get_title() == f"80 % intervals hold {share:.3g} % of 50 rows"
    np.testing.assert_array_equal(display.mean, fitted.predict(X))


@pytest.mark.parametrize("frame", [False, True])
def test_one_column_gives_a_curve(frame):
    X, y = problem(40, 0, columns=1)
    if frame:
        X, y = pd.DataFrame({"depth": X[:, 0]}), pd.Series(y, name="heat")
    model = TNKMRegressor(**QUICK).fit(X, y)
    display = PredictiveDisplay.from_estimator(model, X, y)
    x, mean, lower, upper = display.curve
    grid = pd.DataFrame({"depth": x}) if frame else x[:, None]
    np.testing.assert_array_equal(mean, model.predict(grid))
    np.testing.assert_array_equal((lower, upper), model.predict_interval(grid, 0.9))
    names = (display.ax_.get_xlabel(), display.ax_.get_ylabel())
    assert names == (("depth", "heat") if frame else ("x", "y"))
    assert "mean" in labels(PredictiveDisplay.from_estimator(model, X).ax_)  # without y


def test_pictures_refuse_what_they_cannot_show(fitted):
    X, y = problem(20, 1)
    with pytest.raises(InputError, match="one column of numbers"):
        PredictiveDisplay.from_estimator(fitted, X, y, kind="curve")
    with pytest.raises(InputError, match="give y"):
        PredictiveDisplay.from_estimator(fitted, X)
    with pytest.raises(InputError, match="kind is 'bars'"):
        PredictiveDisplay.from_estimator(fitted, X, y, kind="bars")
    with pytest.raises(InputError, match="'coverage', 'pit'"):
        CalibrationDisplay.from_estimator(fitted, X, y, kind="bars")


# spectra -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", ["ggn", "block", "diag", "last"])
def test_eigenvalues_are_those_of_the_inverse_covariance(curvature):
    model = TNKMRegressor(**QUICK, curvature=curvature).fit(*problem(100, 0))
    posterior = model.machines_[0].fit.posterior
    covariance = posterior.solve(np.eye(posterior.n_weights))
    expected = 1.0 / np.linalg.eigvalsh(covariance)
    np.testing.assert_allclose(eigenvalues(posterior), expected, rtol=1e-6)


def test_eigenvalues_with_fewer_rows_than_weights():
    rng = np.random.default_rng(0)
    gamma, J = rng.uniform(0.5, 2.0, 8), rng.normal(size=(8, 3))
    s = gamma**-0.5
    U, sigma, _ = np.linalg.svd(s[:, None] * J, full_matrices=False)
    found = eigenvalues(LowRank(s, U, 1.0 / (1.0 + sigma**2)))
    expected = np.linalg.eigvalsh(np.diag(gamma) + J @ J.T)[::-1]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_threshold_shown_drops_what_a_threshold_fitted_drops(fitted):
    spectrum = eigenvalues(fitted.machines_[0].fit.posterior)
    cut = float(np.sqrt(spectrum[9] * spectrum[10]))
    shown = SpectrumDisplay.from_estimator(fitted, threshold=cut)
    assert shown.n_below_ == [20]
    assert labels(shown.ax_)[0] == "30 directions, 20 dropped"
    relative = cut / spectrum[0]
    assert SpectrumDisplay.from_estimator(fitted, threshold=relative, relative=True).n_below_ == [
        20
    ]
    cut_off = TNKMRegressor(**QUICK, threshold=cut).fit(*problem(150, 0))
    display = SpectrumDisplay.from_estimator(cut_off)
    assert display.n_below_ == [cut_off.n_dropped_]
    assert len(display.spectra[0]) == 30 - cut_off.n_dropped_
    assert np.all(display.spectra[0] >= cut * (1 - 1e-12))


def test_each_machine_has_its_line():
    model = TNKMRegressor(**QUICK, n_members=2).fit(*problem(60, 0))
    display = SpectrumDisplay.from_estimator(model)
    assert len(display.ax_.lines) == 2
    assert labels(display.ax_) == ["machine 1: 30 directions", "machine 2: 30 directions"]
    many = SpectrumDisplay([np.array([2.0, 1.0])] * 8, [1] * 8)
    assert many.plot().ax_.get_title() == "8 machines, 8 of 24 directions dropped"


@pytest.mark.parametrize("name", displays.__all__)
def test_displays_follow_the_convention(name, fitted):
    display = getattr(displays, name)
    X, y = problem(30, 3)
    rows = {"CalibrationDisplay": (X, y), "PredictiveDisplay": (X, y)}.get(name, ())
    made = display.from_estimator(fitted, *rows)
    assert isinstance(made, display)
    assert made.figure_ is not None
    assert made.plot() is made
