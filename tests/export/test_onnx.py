"""ONNX graphs give what Python gives: every basis, warp, posterior, kind of column and noise."""

import json
import sys
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

from tensorlace import (
    Categorical,
    Datetime,
    InputError,
    ModelFileError,
    Ordinal,
    Periodic,
    SizeError,
    TNKMRegressor,
    load,
    save,
)
from tensorlace.columns.bases import Subset
from tensorlace.estimators.regressor_cv import TNKMRegressorCV
from tensorlace.export import onnx_inputs, save_onnx, to_onnx, translation
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Root
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.machines.noise import Noise
from tensorlace.portable import Builder, Input
from tensorlace.predictive.distributions import Normal
from tensorlace.report.embed import embed
from tests.helpers.models import with_ensemble

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# warnings about the fits, which are small on purpose
ignore_curvature = pytest.mark.filterwarnings("ignore::tensorlace.CurvatureWarning")

N = 60
UNBOUNDED = ["chebyshev", "legendre", "polynomial", "unit_polynomial"]
BOUNDED = ["cosine", "sine", "fourier", "bspline"]
INTERVAL = ["minmax", "quantile", "mixed"]
GRID = [(b, w) for b in BOUNDED for w in INTERVAL] + [
    (b, w) for b in UNBOUNDED for w in [*INTERVAL, "standardise", "identity"]
]


def session(model):
    proto = to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    used = {name for node in proto.graph.node for name in node.input}
    assert used >= {constant.name for constant in proto.graph.initializer}
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def run(model, X):
    return session(model).run(None, onnx_inputs(model, X))


def check(model, X, digits=1e-12):
    """All outputs for all rows together, and for one row alone."""
    dist = model.predict_dist(X)
    wanted = (dist.mean, dist.std, dist.epistemic_std, dist.aleatoric_std)
    live, feed = session(model), onnx_inputs(model, X)
    scale = model.machines_[0].target.scale
    for got, want in zip(live.run(None, feed), wanted, strict=True):
        assert got.shape == (len(X),)
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=digits, atol=digits * scale)
    alone = live.run(None, {name: tensor[-1:] for name, tensor in feed.items()})
    for got, want in zip(alone, wanted, strict=True):
        np.testing.assert_allclose(got, want[-1:], rtol=digits, atol=digits * scale)


def table(seed=0, n=N):
    """Numbers with ties, a crowd, a constant column and another unit."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    X[:, 1] = np.round(5 * np.exp(X[:, 1]), 1)
    X[:, 2] *= 1e-3
    X[:, 3] = 7.0
    y = 100 + 20 * np.sin(2 * X[:, 0]) * X[:, 1] + 500 * X[:, 2] + rng.standard_normal(n)
    return X, y


def around(X, factor=1.2):
    """Rows inside and outside the range, the knots themselves, and missing values."""
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    rng = np.random.default_rng(1)
    wide = low + (high - low) * rng.uniform(1 - factor, factor, (40, X.shape[1]))
    rows = np.concatenate([X, wide, [low, high], X[:8] + 1.0])
    rows[3, 0] = rows[4, 1] = rows[5, -1] = np.nan
    rows[6] = np.nan
    return rows


@pytest.mark.parametrize(("basis", "warp"), GRID)
def test_every_basis_and_warp(basis, warp):
    X, y = table()
    model = TNKMRegressor(
        rank=2, n_basis=5, basis=basis, warp=warp, random_state=0, max_sweeps=20
    ).fit(X, y)
    rows = around(X)
    check(model, rows)
    gaps = X.copy()
    gaps[::7, 0] = gaps[::5, 2] = np.nan
    check(model.fit(gaps, y), rows)


@pytest.mark.parametrize("missing", [False, True])
def test_indicator(missing):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (N, 3)).astype(float)
    y = X[:, 0] * X[:, 1] + rng.standard_normal(N)
    X[3, 0] = np.nan if missing else 2.0
    model = TNKMRegressor(rank=2, basis="indicator", random_state=0, max_sweeps=20).fit(X, y)
    check(model, np.concatenate([X, [[9.0, 1.0, 0.5], [np.nan, 0.0, np.nan]]]))


POSTERIORS = {
    "ggn": Root,
    "full": Root,
    "last": Root,
    "block": Blocks,
    "diag": Diagonal,
}


@ignore_curvature
@pytest.mark.parametrize("threshold", [None, 1.0])
@pytest.mark.parametrize(
    ("curvature", "rank", "additive"),
    [
        (curvature, rank, additive)
        for curvature in POSTERIORS
        for rank, additive in ((2, False), (2, True), (0, True))
        if rank or curvature != "last"  # without products there is no core to choose
    ],
)
def test_every_posterior(curvature, threshold, rank, additive):
    X, y = table()
    model = TNKMRegressor(
        rank=rank,
        n_basis=3,
        curvature=curvature,
        threshold=threshold,
        additive=additive,
        random_state=0,
        max_sweeps=20,
    ).fit(X, y)
    assert isinstance(model.machines_[0].fit.posterior, POSTERIORS[curvature])
    check(model, around(X))


@pytest.mark.parametrize("additive", [False, True])
def test_more_weights_than_rows(additive):
    X, y = table(n=20)
    model = TNKMRegressor(rank=4, n_basis=6, additive=additive, random_state=0).fit(X, y)
    assert isinstance(model.machines_[0].fit.posterior, LowRank)
    check(model, around(X))


@ignore_curvature
@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("curvature", ["ggn", "last", "block", "diag"])
def test_tensor_train(curvature, additive):
    X, y = table()
    model = TNKMRegressor(
        rank=3,
        n_basis=3,
        network="tt",
        curvature=curvature,
        additive=additive,
        random_state=0,
        max_sweeps=20,
    ).fit(X, y)
    check(model, around(X))


@pytest.mark.parametrize("additive", [False, True])
def test_rotation(additive):
    rng = np.random.default_rng(0)
    X, y = table()
    X[:, 3] = X[:, 0] + 0.1 * rng.standard_normal(N)
    kinds = {1: Periodic(3.0)}
    model = TNKMRegressor(
        rank=2, rotate=True, additive=additive, columns=kinds, random_state=0, max_sweeps=20
    ).fit(X, y)
    rotation = model.machines_[0].columns.rotation
    assert rotation is not None
    assert rotation.others.tolist() == [1]
    check(model, around(X))


def test_one_column():
    X, y = table()
    model = TNKMRegressor(rank=2, random_state=0).fit(X[:, :1], y)
    check(model, around(X)[:, :1])


def test_pruned_bases_and_priors_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3))
    X[::9, 2] = np.nan
    y = np.cos(2 * np.pi * X[:, 0]) + X[:, 1] + 0.01 * rng.standard_normal(200)
    model = TNKMRegressor(
        rank=2, n_basis=8, prior_groups="column_order", random_state=0, max_sweeps=50
    ).fit(X, y)
    assert any(isinstance(c.basis, Subset) for c in model.machines_[0].columns.columns)
    check(model, around(X))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_far_from_one(unit):
    X, y = table()
    model = TNKMRegressor(rank=2, random_state=0, max_sweeps=20).fit(X * unit, y * unit)
    rows = X * unit
    for got, want in zip(run(model, rows), model.predict(rows, return_std=True), strict=False):
        np.testing.assert_allclose(got, want, rtol=1e-11)


@pytest.mark.parametrize("number", [1e-50, -1e-200, 1 + 1e-9, 1 - 1e-12, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div"])
def test_numbers_that_a_runtime_takes_for_neutral(kind, number):
    if kind == "div" and number == 0.0:
        number = 2.0
    g = Builder()
    x = g.column(g.input(Input("x", 1)), 0)
    proto = translation.onnx_model(g.build({"y": g.apply(kind, x, number)}), {}, "")
    live = onnxruntime.InferenceSession(proto.SerializeToString())
    rows = np.array([1.0, 1e-50, -3e-200])
    want = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[kind](
        rows, number
    )
    assert live.run(None, {"x": rows[:, None]})[0].tolist() == want.tolist()


def test_many_knots():
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=(20_000, 1))
    model = TNKMRegressor(
        rank=1, n_basis=4, warp="quantile", random_state=0, max_sweeps=5, solver="als"
    ).fit(x, np.log(x[:, 0]))
    assert model.machines_[0].columns.columns[0].warp.knots.size > 8000
    check(model, x[:500])


def frame(n=80):
    rng = np.random.default_rng(0)
    shop = rng.integers(3, size=n)
    out = pd.DataFrame(
        {
            "size": rng.uniform(0, 9, n),
            "shop": np.array(["é", "b b", "c"])[shop],
            "zip": rng.choice([8001, 8002, 9000], n),
            "hour": rng.uniform(-30, 30, n),
            "day": pd.date_range("2024-02-27 06:00", periods=n, freq="17h"),
            "grade": rng.choice(["low", "mid", "high"], n),
            "open": rng.random(n) < 0.5,
        }
    )
    y = out["size"] + shop + np.sin(out["hour"] / 24 * 2 * np.pi) + 0.1 * rng.standard_normal(n)
    return out, y.to_numpy()


KINDS = {
    "zip": Categorical(),
    "hour": Periodic(24),
    "grade": Ordinal(["low", "mid", "high"]),
    "day": Datetime(),
}


@pytest.fixture(scope="module")
def mixed():
    X, y = frame()
    for k, name in enumerate(("size", "shop", "hour", "day")):
        X.loc[3 * k, name] = None
    return TNKMRegressor(rank=2, columns=KINDS, random_state=0, max_sweeps=20).fit(X, y)


def test_kinds_of_columns(mixed):
    X, _ = frame()
    X.loc[0, "shop"], X.loc[1, "zip"], X.loc[2, "day"] = "new", 1, pd.Timestamp("1999-12-31")
    X = X.astype({"zip": object, "open": object, "grade": object})
    for k, name in enumerate(X.columns):
        X.loc[10 + k, name] = None
    check(mixed, X)
    assert mixed.extrapolated(X)[[0, 1, 12]].all()


def test_inputs_are_what_the_documentation_says(mixed):
    proto = to_onnx(mixed, target="price")
    kinds = {i.name: i.type.tensor_type.elem_type for i in proto.graph.input}
    double, string = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
    assert kinds == {n: string if n in ("shop", "grade") else double for n in mixed.kinds_}
    shapes = [
        [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim]
        for i in proto.graph.input
    ]
    assert shapes == [["rows", 1]] * 7
    about = {p.key: p.value for p in proto.metadata_props}
    columns = {c["name"]: c for c in json.loads(about["tensorlace.columns"])}
    assert about["tensorlace.target"] == "price"
    assert about["tensorlace.version"] == proto.producer_version
    assert columns["shop"] == {
        "name": "shop",
        "kind": "Categorical()",
        "missing": "",
        "levels": ["b b", "c", "é"],
    }
    assert columns["zip"]["levels"] == [8001, 8002, 9000]
    assert columns["day"]["unit"] == "days since 1970-01-01 UTC"
    live = onnxruntime.InferenceSession(proto.SerializeToString())
    hand = {
        "size": [4.5],
        "shop": [""],
        "zip": [9000.0],
        "hour": [np.nan],
        "day": [19782.25],
        "grade": ["mid"],
        "open": [1.0],
    }
    feed = {
        k: np.array(v, dtype=object if isinstance(v[0], str) else float)[:, None]
        for k, v in hand.items()
    }
    row = pd.DataFrame(
        {**hand, "shop": [None], "open": [True], "day": [pd.Timestamp("2024-02-29 06:00")]}
    )
    np.testing.assert_allclose(
        live.run(["mean", "std"], feed), mixed.predict(row, return_std=True), rtol=1e-11
    )


def test_rows_that_python_refuses_are_nan(mixed):
    X, _ = frame()
    feed = onnx_inputs(mixed, X[:4])
    feed["size"][1] = np.inf
    feed["grade"][2] = "unheard of"
    for out in session(mixed).run(None, feed):
        assert np.isnan(out).tolist() == [False, True, True, False]


def test_arrays_of_categories():
    X = np.array([["a", 1.0], ["b", 2.0], ["a", 3.0], ["b", 4.5]] * 5, dtype=object)
    model = TNKMRegressor(rank=1, random_state=0).fit(X, X[:, 1].astype(float))
    check(model, X)
    numbers = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [np.nan, 8.0]] * 5)
    model = TNKMRegressor(rank=1, columns={0: Categorical()}, random_state=0)
    check(model.fit(numbers, numbers[:, 1]), np.append(numbers, [[4.0, 5.0]], axis=0))


def test_text_where_categories_are_numbers():
    X = pd.DataFrame({"k": [1, 2, 3] * 8, "x": np.arange(24.0)})
    model = TNKMRegressor(rank=1, columns={"k": Categorical()}, random_state=0).fit(X, X["x"])
    new = X.astype({"k": object})
    new.loc[0, "k"] = "three"
    check(model, new)


def members(X, y, **arguments):
    model = TNKMRegressor(rank=2, n_members=3, random_state=0, max_sweeps=15, **arguments)
    return model.fit(X, y)


@pytest.mark.parametrize("sharp", [False, True])
@pytest.mark.parametrize("degrees", [np.inf, 3.5])
@pytest.mark.parametrize("strength", [0.0, 0.7])
def test_mixtures_and_their_noise(sharp, degrees, strength):
    X, y = table()
    model = members(X, y)
    other = TNKMRegressor(rank=2, additive=True, rotate=True, random_state=1, max_sweeps=15)
    last = other.fit(X, 3 * y + 1e3).machines_[0]  # of another scale
    rng = np.random.default_rng(2)
    logs = [
        TNKMRegressor(rank=1, random_state=k, max_sweeps=15).fit(X, 15 * rng.standard_normal(N))
        for k in range(2)
    ]
    model = with_ensemble(
        model,
        machines=(*model.machines_, last),
        weights=np.array([0.5, 0.2, 0.0, 0.3]),
        sharp=sharp,
        noise=Noise(0.9, degrees, strength, tuple(m.machines_[0] for m in logs), 0.3, 0.8),
    )
    rows = around(X)
    if strength:
        assert abs(model.noise_.log_variance(rows)).max() == 6.0
    check(model, rows)
    check(with_ensemble(model, machines=model.machines_[:1], weights=np.ones(1)), rows)


def test_default_model(tmp_path):
    rng = np.random.default_rng(0)
    X, y = frame(150)
    size = X["size"].to_numpy()
    y = y + 4.0 * np.sin(size) + 0.3 * size * rng.standard_t(3, 150)
    model = TNKMRegressor(time_budget=1, random_state=0).fit(X, y)
    assert len(model.machines_) > 1
    assert model.model_.ensemble.sharp
    X.loc[0, "shop"] = "new"
    check(model, X)
    save(model, tmp_path / "model.tlace")
    save_onnx(load(tmp_path / "model.tlace"), tmp_path / "model.onnx", target="price")
    assert (tmp_path / "model.onnx").read_bytes() == to_onnx(
        model, target="price"
    ).SerializeToString()


@pytest.mark.parametrize("n_members", [1, 3])
def test_fit_with_tails(n_members):
    X, y = table()
    y[3] += 1e5
    settings = {"rank": 2, "random_state": 0, "max_sweeps": 40, "tol": 1e-2}
    model = TNKMRegressor(noise="student", n_members=n_members, **settings).fit(X, y)
    assert model.distrusted_["row"][0] == 3
    assert np.isfinite(model.noise_.degrees)
    check(model, around(X))


def test_members_share_what_is_the_same():
    X, y = table()
    single = TNKMRegressor(rank=2, random_state=0, max_sweeps=15).fit(X, y)
    one, three = (len(to_onnx(m).graph.node) for m in (single, members(X, y)))
    assert three < 2 * one


def test_other_estimators():
    X, y = table()
    model = TNKMRegressorCV(ranks=[1, 2], n_bases=[3], thresholds=[1e-3], random_state=0)
    check(model.fit(X[:, :2], y), X[:, :2])


def test_names_that_are_taken():
    X = pd.DataFrame({"mean": np.arange(9.0), "t0": list("abc") * 3, "std": 1.0})
    model = TNKMRegressor(rank=1, random_state=0).fit(X, X["mean"])
    outputs = [o.name for o in to_onnx(model).graph.output]
    assert outputs[:2] == ["predicted_mean", "predicted_std"]
    check(model, X)


def test_refused(monkeypatch, tmp_path):
    X, y = table()
    model = TNKMRegressor(rank=1, predictive="sampled", random_state=0, max_sweeps=5).fit(X, y)
    with pytest.raises(InputError, match=r"predictive='sampled' draws 100 .*='linearized'"):
        to_onnx(model)
    model.predictive = "linearized"
    with pytest.raises(InputError, match="a list is no fitted model"):
        to_onnx([])
    with pytest.raises(ModelFileError, match="cannot be written: No such file"):
        save_onnx(model, tmp_path / "nowhere" / "model.onnx")
    monkeypatch.setattr(translation, "LARGEST", 100)
    with pytest.raises(SizeError, match=r"constants of the graph take .*n_members"):
        to_onnx(model)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'tensorlace\[onnx\]'"):
        to_onnx(model)


@final
@dataclass(frozen=True)
class Poisson(Likelihood):
    """Counts, whose predictive is not normal."""

    squared: ClassVar[bool] = False
    standardises: ClassVar[bool] = False

    def check(self, y):
        pass

    def deviance(self, y, f):
        return 2.0 * (np.exp(f) - y * f)

    def log_saturated(self, y):
        return np.zeros_like(y)

    def slope(self, y, f):
        return y - np.exp(f)

    def curvature(self, y, f):
        return np.exp(f)

    def predictive(self, mean, std, noise_std):
        return Normal(np.exp(mean), std, np.exp(0.5 * mean))

    def sample(self, f, noise_std, rng):
        return rng.poisson(np.exp(f)).astype(float)


def test_likelihoods_whose_predictive_is_not_normal():
    model = TNKMRegressor(rank=1, random_state=0, max_sweeps=5).fit(*table())
    (machine,) = model.machines_
    machine = replace(machine, fit=replace(machine.fit, likelihood=Poisson()))
    for export in (to_onnx, embed):
        with pytest.raises(InputError, match="likelihood Poisson are not normal"):
            export(with_ensemble(model, machines=(machine,)))


def test_categories_that_a_graph_cannot_tell_apart():
    X = pd.DataFrame({"k": ["a", 1, "b"] * 5, "x": np.arange(15.0)})
    model = TNKMRegressor(rank=1, random_state=0).fit(X, X["x"])
    with pytest.raises(InputError, match=r"column 'k' has categories of types int, str: make"):
        to_onnx(model)
    X = pd.DataFrame({"k": ["a", "", None] * 5, "x": np.arange(15.0)})
    model = TNKMRegressor(rank=1, random_state=0).fit(X, X["x"])
    with pytest.raises(InputError, match="has '' as a category"):
        onnx_inputs(model, X)
    check(model, X.dropna())
