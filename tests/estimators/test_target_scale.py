"""Targets within bounds: whatever is asked of a model, it says nothing beyond them."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest

from tensorlace import InputError, TNKMRegressor, Transformed, load, save
from tensorlace.compact import compact
from tensorlace.estimators.regressor_cv import TNKMRegressorCV
from tensorlace.export import onnx_inputs, to_onnx
from tensorlace.report.embed import embed
from tensorlace.scales import IDENTITY
from tensorlace.scales.clip import Clip
from tensorlace.scales.logit import Logit
from tensorlace.serve.model import ServedModel
from tensorlace.sources import ArraySource
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.reported import agree

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (120, 2))
PRICES = np.maximum(2.0 * X[:, 0] + X[:, 1] + 0.1 * RNG.standard_normal(120), 0.0)
SHARES = np.clip(0.5 + 0.5 * X[:, 0] + 0.2 * RNG.standard_normal(120), 0.0, 1.0)
ROWS = np.concatenate([X[:20], RNG.uniform(-1.5, 1.5, (20, 2)), [[-9.0, 4.0], [30.0, -30.0]]])


def fit(y=PRICES, **params):
    return TNKMRegressor(**{"rank": 2, "n_basis": 4, "random_state": 0, **params}).fit(X, y)


def everything(model, rows=ROWS):
    """All values of y that a model says of rows."""
    dist = model.predict_dist(rows)
    yield model.predict(rows)
    yield dist.mean
    yield dist.quantile([1e-12, 0.01, 0.5, 0.99, 1 - 1e-12])
    yield from model.predict_interval(rows, 0.98)
    yield model.predict_quantiles(rows, [0.02, 0.5, 0.98])
    yield model.sample_y(rows, 50)
    yield dist.sample(50, rng=0)
    for column in (0, 1):
        effects = model.partial_effects(column)
        yield from (effects.mean, effects.lower, effects.upper)
    served = ServedModel.of(model, "m").predict(rows, 0.98)
    yield from (np.array(served[name]) for name in ("mean", "lower", "upper"))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"predictive": "sampled", "n_draws": 20},
        {"n_members": 2, "noise": "student"},
        {"extrapolation": "plain", "basis": "polynomial"},
        {"network": "tt"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("y", "high"), [(PRICES, np.inf), (SHARES, 1.0)])
def test_nothing_is_beyond_the_bounds(params, y, high):
    model = fit(y, **params)
    assert model.model_.scale == Clip(0.0, high)
    for values in everything(model):
        assert values.min() >= 0.0
        assert values.max() <= high
    model.calibrate(np.tile(X, (3, 1)), np.tile(y, 3))
    for values in everything(model):
        assert values.min() >= 0.0
        assert values.max() <= high


def test_logarithms():
    y = PRICES + 0.05
    model = fit(y, target_scale="log")
    scale = model.model_.scale
    u = np.log(y)
    assert scale.high == pytest.approx(np.exp(u.max() + 0.5 * (u.max() - u.min())), rel=1e-12)
    bare = fit(u, target_scale="identity")
    dist, other = model.predict_dist(ROWS), bare.predict_dist(ROWS)
    np.testing.assert_array_equal(dist.base.means, other.means)
    np.testing.assert_allclose(dist.logpdf(0.5), other.logpdf(np.log(0.5)) - np.log(0.5))
    np.testing.assert_array_equal(model.sample_y(ROWS, 3), scale.forward(bare.sample_y(ROWS, 3)))
    for values in everything(model):
        assert values.min() >= 0.0
        assert values.max() <= scale.high
    model.calibrate(np.tile(X, (3, 1)), np.tile(y, 3))
    for values in everything(model):
        assert values.min() >= 0.0
    effects, of_u = model.partial_effects(0), bare.partial_effects(0)
    np.testing.assert_allclose(effects.mean, np.exp(of_u.mean), rtol=1e-12)
    np.testing.assert_allclose(effects.std, of_u.std * np.exp(of_u.mean), rtol=1e-12)
    assert "in units of log y" in str(model.summary()).replace("\n" + " " * 26, " ")


def test_log_odds(tmp_path):
    y = 100 * (0.01 + 0.98 * SHARES)
    model = fit(y, target_scale="logit", target_range=(0, 100))
    assert model.model_.scale == Logit(0.0, 100.0)
    for values in everything(model):
        assert values.min() >= 0.0
        assert values.max() <= 100.0
    bare = fit(np.log(y / (100 - y)), target_scale="identity")
    q = 100 / (1 + np.exp(-bare.predict_dist(ROWS).quantile([0.1, 0.9])))
    np.testing.assert_allclose(model.predict_dist(ROWS).quantile([0.1, 0.9]), q, rtol=1e-9)
    save(model, tmp_path / "m.tlace")
    np.testing.assert_array_equal(load(tmp_path / "m.tlace").predict(ROWS), model.predict(ROWS))
    with pytest.raises(InputError, match="targets are not between 0 and 1, such as"):
        fit(SHARES, target_scale="logit")


def test_logarithms_of_rows_elsewhere(tmp_path):
    y = PRICES + 0.05
    np.savetxt(tmp_path / "t.csv", np.c_[X, y], "%.17g", delimiter=",", header="a,b,y", comments="")
    params = {"rank": 2, "n_basis": 4, "random_state": 0, "target_scale": "log"}
    model = TNKMRegressor(**params).fit_rows(tmp_path / "t.csv", "y")
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    np.testing.assert_array_equal(model.predict(frame), fit(y, target_scale="log").predict(ROWS))
    with pytest.raises(InputError, match="targets are not above 0, such as 0"):
        fit(target_scale="log")
    with pytest.raises(InputError, match="targets are not above 1"):
        fit(y, target_scale="log", target_range=(1, 50))
    shifted = fit(PRICES, target_scale="log", target_range=(-1, 50)).model_.scale
    assert shifted.low == -1.0
    assert PRICES.max() < shifted.high < 50.0


def test_distrusted_rows_are_in_units_of_y():
    y = np.exp(np.sin(2 * X[:, 0]) + 0.05 * RNG.standard_normal(120))
    y[7] = 5e6
    model = fit(y, target_scale="log", noise="student")
    assert model.distrusted_["row"].tolist() == [7]
    assert model.distrusted_["y"][0] == pytest.approx(5e6, rel=1e-9)
    assert 0.1 < model.distrusted_["prediction"][0] < 10.0


@pytest.mark.filterwarnings("ignore::tensorlace.MisspecificationWarning")
def test_a_search_keeps_to_the_bounds_too():
    model = fit(rank="auto", n_basis="auto", time_budget=0.5, n_jobs=1)
    assert model.model_.scale == Clip(0.0)
    for values in everything(model):
        assert values.min() >= 0.0
    bare = fit(rank="auto", n_basis="auto", time_budget=0.5, n_jobs=1, target_scale="identity")
    np.testing.assert_array_equal(model.check_.pit, bare.check_.pit)
    assert model.check_.log_score == bare.check_.log_score


def test_it_is_the_model_without_bounds_seen_through_them():
    model, bare = fit(), fit(target_scale="identity")
    assert bare.model_.scale is IDENTITY
    dist, u = model.predict_dist(ROWS), bare.predict_dist(ROWS)
    assert isinstance(dist, Transformed)
    np.testing.assert_array_equal(dist.base.means, u.means)
    assert u.quantile(0.02).min() < 0.0
    np.testing.assert_array_equal(model.predict(ROWS), dist.mean)
    np.testing.assert_array_equal(model.predict(ROWS, return_std=True)[1], dist.std)
    far = u.mean - 9.0 * u.std > 0.0
    assert far.any()
    np.testing.assert_array_equal(dist.mean[far], u.mean[far])
    np.testing.assert_array_equal(model.sample_y(ROWS, 5), np.maximum(bare.sample_y(ROWS, 5), 0.0))
    y = np.full(len(ROWS), 0.3)
    np.testing.assert_array_equal(dist.logpdf(y), u.logpdf(y))
    assert np.all(dist.crps(y) <= u.crps(y))


@pytest.mark.parametrize(
    ("y", "scale"),
    [
        (PRICES + 1e-9, Clip(0.0)),
        (PRICES - 1e-9, IDENTITY),
        (SHARES, Clip(0.0, 1.0)),
        (1.01 * SHARES, Clip(0.0)),
        (-SHARES, IDENTITY),
    ],
)
def test_bounds_are_those_that_the_targets_keep(y, scale):
    assert fit(y, rank=1).model_.scale == scale
    source = ArraySource(X, y)
    assert TNKMRegressor(rank=1, n_basis=3).fit_rows(source).model_.scale == scale


def test_rows_that_are_not_in_memory(tmp_path):
    np.savetxt(tmp_path / "t.csv", np.c_[X, SHARES], delimiter=",", header="a,b,y", comments="")
    model = TNKMRegressor(rank=1, n_basis=3).fit_rows(tmp_path / "t.csv", "y")
    assert model.model_.scale == Clip(0.0, 1.0)


def test_bounds_that_are_given():
    assert fit(target_range=(-1, 10)).model_.scale == Clip(-1.0, 10.0)
    assert fit(target_range=[-np.inf, 10]).model_.scale == Clip(high=10.0)
    assert fit(target_range=(-np.inf, np.inf)).model_.scale is IDENTITY
    assert fit(target_range=(0, 10), target_scale="identity").model_.scale is IDENTITY
    assert TNKMRegressor.paper().fit(X, PRICES).model_.scale is IDENTITY
    chosen = TNKMRegressorCV(ranks=[1], n_bases=[2], n_splits=2).fit(X, PRICES)
    assert chosen.model_.scale is IDENTITY


@pytest.mark.parametrize("bounds", [(0,), (1, 1), (3, 2), ("a", "b"), [[0, 1]], (0, np.nan)])
def test_bounds_that_are_none(bounds):
    with pytest.raises(InputError, match="target_range is"):
        fit(target_range=bounds)


def test_targets_that_do_not_keep_to_the_bounds():
    with pytest.raises(InputError, match="targets are not from 0 to 1"):
        fit(target_range=(0, 1))
    with pytest.raises(InputError, match="nothing to keep to"):
        fit(PRICES - 1.0, target_scale="clip")


def test_files(tmp_path):
    model = fit(SHARES)
    save(model, tmp_path / "m.tlace")
    other = load(tmp_path / "m.tlace")
    assert other.model_.scale == Clip(0.0, 1.0)
    np.testing.assert_array_equal(other.predict(ROWS), model.predict(ROWS))
    model = fit(PRICES + 0.05, target_scale="log")
    save(model, tmp_path / "log.tlace")
    other = load(tmp_path / "log.tlace")
    assert other.model_.scale == model.model_.scale
    np.testing.assert_array_equal(other.predict(ROWS), model.predict(ROWS))
    bare = fit(SHARES, target_scale="identity")
    save(bare, tmp_path / "bare.tlace")
    assert b"_scale" in (tmp_path / "m.tlace").read_bytes()
    assert b'_scale\\"' not in (tmp_path / "bare.tlace").read_bytes().replace(b"target_scale", b"")
    assert b"target_" not in (tmp_path / "m.tlace").read_bytes()


OTHERS = [{}, {"n_members": 2, "noise": "student"}]
CASES = [
    *((y, params) for y in (PRICES, SHARES) for params in OTHERS),
    *((PRICES + 0.05, {**params, "target_scale": "log"}) for params in OTHERS),
    *((0.01 + 0.98 * SHARES, {**params, "target_scale": "logit"}) for params in OTHERS),
]


@pytest.mark.parametrize(("y", "params"), CASES)
def test_onnx(y, params):
    model = fit(y, **params)
    live = onnxruntime.InferenceSession(
        to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    dist = model.predict_dist(ROWS)
    wanted = (dist.mean, dist.std, dist.epistemic_std, dist.aleatoric_std)
    for got, want in zip(live.run(None, onnx_inputs(model, ROWS)), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("y", "params"), CASES)
def test_panel(javascript, y, params):
    model = fit(y, **params)
    rows = ROWS[:-2]
    agree(javascript, model, rows)
    model.calibrate(np.tile(X, (2, 1)), np.tile(y, 2))
    model.calibration_.z[:5], model.calibration_.z[-5:] = -6.0, 7.0
    agree(javascript, model, rows)
    found = javascript.predict(json.loads(json.dumps(embed(model))), ROWS)
    low = np.array([[row["mean"], *row["quantiles"]] for row in found])
    assert low.min() >= 0.0


def test_summary_and_compact_models():
    model = fit(rank=6, n_basis=8)
    assert "as observed, 0 or more" in str(model.summary())
    small = compact(model, 15_000)
    assert small.model_.scale == Clip(0.0)
    assert small.predict(ROWS).min() >= 0.0
