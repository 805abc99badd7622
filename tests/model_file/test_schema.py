"""The schema: models that contradict themselves are neither read nor saved."""

import dataclasses
import math
import os

import numpy as np
import pandas as pd
import pytest

from tensorlace import ModelFileError, TNKMRegressor, load, save
from tensorlace.laplace.curvature import Last
from tensorlace.model_file.files import describe
from tensorlace.model_file.schema import check_state
from tensorlace.model_file.state import state_of
from tensorlace.predictive.conformal import Calibration
from tensorlace.predictive.held_back import HeldBackTest
from tests.helpers.model_files import (
    N,
    X,
    fitted,
    load_copy,
    refuses,
    resealed,
    round_trip,
    same,
)
from tests.helpers.models import with_ensemble, with_model, with_record

W = "machines_.0.fit.posterior.W"


def machine(content):
    return content["state"]["machines_"]["items"][0]["fields"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda c, a: c.update({"class": "Pipeline"}), "no estimator"),
        (lambda c, a: c.update({"class": 3}), "unknown or missing"),
        (lambda c, a: c.update(extra=1), "unknown or missing"),
        (lambda c, a: c.pop("about"), "unknown or missing"),
        (lambda c, a: c["params"].update(color="red"), "color: unknown"),
        (lambda c, a: c["params"].pop("rank"), "rank: unknown or missing"),
        (lambda c, a: c["params"].update(rank="os.system"), "rank"),
        (lambda c, a: c["params"].update(rank=2.5), "rank"),
        (lambda c, a: c["state"].update(evil_=1), "evil_: unknown"),
        (lambda c, a: c["state"].pop("weights_"), "weights_: unknown or missing"),
        (lambda c, a: c["state"].update(n_features_in_=2), "kinds_ does not fit"),
        (lambda c, a: c["state"].update(n_features_in_="1"), "n_features_in_"),
        (lambda c, a: c["state"].update(machines_=[]), "machines_ is of the wrong type"),
        (lambda c, a: c["state"].update(machines_={"type": "subprocess.Popen"}), "unknown type"),
        (lambda c, a: c["state"].update(machines_={"type": 3}), "has no type"),
        (lambda c, a: c["state"].update(machines_={"type": "tuple"}), "cannot be read"),
        (
            lambda c, a: c["state"].update(machines_={"type": "tuple", "items": []}),
            "does not fit|unknown|belongs to nothing",
        ),
        (lambda c, a: machine(c).update(more=1), "unknown or missing fields .more"),
        (lambda c, a: machine(c).pop("fit"), "unknown or missing fields .fit"),
        (lambda c, a: machine(c).update(fit=machine(c)["target"]), "fit is of the wrong type"),
        (lambda c, a: machine(c)["fit"]["fields"].pop("beta"), "missing fields .beta"),
        (
            lambda c, a: machine(c)["fit"]["fields"].update(convergence=1.0),
            "convergence is of the wrong type",
        ),
        (lambda c, a: machine(c)["fit"]["fields"].update(beta=-1.0), "fit.beta does not fit"),
        (lambda c, a: machine(c)["fit"]["fields"].update(beta="1"), "beta is of the wrong type"),
        (lambda c, a: a.update(spare=np.zeros(2)), "'spare' belongs to nothing"),
        (lambda c, a: a.update({"../../etc/passwd": np.zeros(2)}), "belongs to nothing"),
        (
            lambda c, a: a.update({"machines_.0.fit.cores.0": np.zeros((1, 3))}),
            "fit.cores does not",
        ),
        (lambda c, a: a.update({"machines_.0.fit.cores.0": np.zeros(2)}), "fit.cores does not"),
        (lambda c, a: a.update({"machines_.0.fit.gamma.0": np.zeros((2, 2))}), "fit.gamma does"),
        (
            lambda c, a: a.update({"machines_.0.fit.cores.0": np.zeros((1, 2), dtype=np.float32)}),
            "wrong type",
        ),
        (lambda c, a: a.update({W: np.zeros((3, 3))}), "posterior.W: array cannot .* no triangle"),
        (lambda c, a: a.update({W: np.zeros(5)}), "posterior.W: array cannot .* no triangle"),
        (lambda c, a: a.update({W: np.zeros(6)}), "fit.posterior does not fit"),
        (lambda c, a: a.update({W: np.full(3, np.nan)}), "fit.posterior does not fit"),
        (lambda c, a: a.update(weights_=np.array([0.5])), "weights_ does not fit"),
        (lambda c, a: a.update(weights_=np.array([np.nan])), "weights_ does not fit"),
        (lambda c, a: a.update(weights_=np.ones(2) / 2), "weights_ does not fit"),
        (lambda c, a: a.pop("weights_"), "no array"),
    ],
)
def test_hostile_contents(data, change, match):
    refuses(resealed(data, change), match)


def column(content):
    return machine(content)["columns"]["fields"]["columns"]["items"][0]["fields"]


@pytest.mark.parametrize(
    "basis",
    [
        {"type": "Cosine", "fields": {"n": 10**15, "lengthscale": None}},
        {"type": "BSpline", "fields": {"n": 2, "degree": 10**9}},
        {"type": "Cosine", "fields": {"n": 2, "lengthscale": -1.0}},
        {"type": "Cosine", "fields": {"n": 2.0, "lengthscale": None}},
        {"type": "Cosine", "fields": {"n": {"type": "float", "value": "nan"}, "lengthscale": None}},
        {"type": "Polynomial", "fields": {"n": 0}},
        {"type": "Missing", "fields": {"base": {"type": "Polynomial", "fields": {"n": 2}}}},
        {"type": "Numeric", "fields": {}},
        None,
        "Polynomial",
    ],
)
def test_hostile_bases(data, basis):
    refuses(resealed(data, lambda c, a: column(c).update(basis=basis)))


TEST = HeldBackTest(9, 1, 0.5, np.nan, 0.25, 0.125, 0.95, 1.0, 2.0, False, "no contradiction")


def test_what_rows_held_back_said_is_kept(model, tmp_path):
    tested = with_record(model, held_back=TEST)
    copy = round_trip(tested, tmp_path, X[:, :1])
    same(copy.fitted_model().record.held_back, TEST)
    assert describe(tmp_path / "model.tlace")["about"]["held_back"] == {
        **vars(TEST),
        "r2": None,
    }
    assert f"{TEST}." in " ".join(str(copy.summary()).split())
    save(model, tmp_path / "bare.tlace")  # without them, a file is as it was before
    assert b"held_back" not in (tmp_path / "bare.tlace").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        *({"n_rows": 0, "n_unlike": 0}, {"n_unlike": 10}, {"rmse": -1.0}, {"level": 1.0}),
        *({"coverage": np.nan}, {"coverage": 1.5}),
    ],
    ids=str,
)
def test_a_test_that_cannot_be_is_refused(model, change, tmp_path):
    wrong = with_record(model, held_back=dataclasses.replace(TEST, **change))
    with pytest.raises(ModelFileError, match="_held_back does not fit"):
        save(wrong, tmp_path / "wrong.tlace")


def test_deeply_nested_values(data):
    node = 1
    for _ in range(300):
        node = {"type": "tuple", "items": [node]}
    for _ in range(3):
        node = {"type": "tuple", "items": [node] * 2}
    refuses(resealed(data, lambda c, a: c["params"].update(columns=node)))


def test_what_is_not_known_cannot_be_saved(model, tmp_path):
    path = tmp_path / "m.tlace"
    with pytest.raises(ModelFileError, match="not fitted"):
        save(TNKMRegressor(), path)
    with pytest.raises(
        ModelFileError, match="a dict cannot be saved: give a fitted TNKMRegressor or"
    ):
        save({}, path)

    class Child(TNKMRegressor):
        pass

    with pytest.raises(ModelFileError, match="a Child cannot be saved"):
        save(Child(), path)
    copy = load_copy(model)
    copy.novelty_ = object()
    with pytest.raises(
        ModelFileError, match=r"'novelty_' \(object\) of TNKMRegressor is not known"
    ):
        save(copy, path)
    copy = load_copy(model)
    copy.set_params(columns={0: Unknown()})
    with pytest.raises(
        ModelFileError, match=r"columns.0 is a .*Unknown, which a model file cannot"
    ):
        save(copy, path)
    copy = load_copy(model)
    copy.set_params(rank=-1)
    with pytest.raises(ModelFileError, match="rank"):
        save(copy, path)
    for notes in ({"a": []}, {1: "a"}, {"a": math.nan}):
        with pytest.raises(ModelFileError, match=r"notes\["):
            save(model, path, notes=notes)
    assert os.listdir(tmp_path) == []


@dataclasses.dataclass(frozen=True)
class Unknown:
    period: float = 1.0


def test_facts_about_models(model):
    """Each rule refuses a model that breaks it."""
    fitted = model.fitted_model()
    check_state("TNKMRegressor", state_of(fitted))
    for name, wrong in {
        "machines_": (),
        "_encoding": dataclasses.replace(fitted.encoding, codes=()),
        "kinds_": {},
        "n_rows_": "3",
        "noise_": dataclasses.replace(model.noise_, degrees=1.0),
        "_background": dataclasses.replace(fitted.rows, weight=np.ones(3)),
        "_relevance": np.ones(2),
        "calibration_": dataclasses.replace(Calibration.of(np.arange(3.0)), upto=np.ones(2)),
    }.items():
        with pytest.raises(ModelFileError):
            check_state("TNKMRegressor", {**state_of(fitted), name: wrong})


def replaced(value, path, new):
    """A frozen dataclass, or tuple of them, with one inner field replaced."""
    head, *rest = path
    if rest:
        new = replaced(value[head] if isinstance(value, tuple) else getattr(value, head), rest, new)
    if isinstance(value, tuple):
        return (*value[:head], new, *value[head + 1 :])
    return dataclasses.replace(value, **{head: new})


@pytest.mark.parametrize(
    ("params", "path", "new"),
    [
        ({"rotate": True}, ("columns", "rotation", "which"), np.array([0, 0, 1])),
        ({"rotate": True}, ("columns", "rotation", "mean"), np.zeros(2)),
        ({"rotate": True}, ("columns", "rotation", "matrix"), np.zeros((2, 3))),
        ({"rotate": True}, ("columns", "rotation", "matrix"), np.zeros((3, 2))),
        ({}, ("columns", "columns"), ()),
        ({"warp": "quantile"}, ("columns", "columns", 0, "warp", "knots"), np.zeros(3)),
        ({"warp": "quantile"}, ("columns", "columns", 0, "warp", "heights"), np.zeros(3)),
        ({"warp": "quantile"}, ("columns", "columns", 0, "warp", "frame", "exponent"), 10**9),
        ({"warp": "minmax"}, ("columns", "columns", 0, "warp", "frame", "width"), math.nan),
        ({"curvature": "last"}, ("fit", "curvature", "core"), None),
        ({"curvature": "last"}, ("fit", "curvature", "core"), 3),
        ({"curvature": "block"}, ("fit", "posterior", "parts"), ()),
        ({"curvature": "diag"}, ("fit", "posterior", "variance"), np.ones(2)),
        ({"rank": 4, "n_basis": 6}, ("fit", "posterior", "c"), np.ones(2)),
        ({"rank": 4, "n_basis": 6}, ("fit", "posterior", "scale"), np.ones(2)),
        ({}, ("fit", "network", "cores"), ()),
        ({}, ("target", "spread"), 0.0),
    ],
)
def test_facts_about_machines(params, path, new, tmp_path):
    model = fitted(**params)
    model = with_ensemble(model, machines=(replaced(model.machines_[0], path, new),))
    with pytest.raises(ModelFileError, match=r"machines_\.0\..* does not fit the rest"):
        save(model, tmp_path / "m.tlace")


def test_levels_are_numbered_once(tmp_path):
    frame = pd.DataFrame({"a": ["x", "y"] * (N // 2), "b": X[:, 0]})
    model = fitted(frame)
    encoding = model.model_.encoding
    code = dataclasses.replace(encoding.codes[0], numbers={"x": 0, "y": 5})
    encoding = dataclasses.replace(encoding, codes=(code, encoding.codes[1]))
    model = with_model(model, encoding=encoding)
    with pytest.raises(ModelFileError, match=r"_encoding.codes.0 does not fit"):
        save(model, tmp_path / "m.tlace")


def test_the_last_core_may_be_the_sum_of_functions(tmp_path):
    """Where it has the highest evidence it is the Bayesian one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 2))
    model = TNKMRegressor(rank=1, additive=True, curvature="block", random_state=0)
    model.fit(X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(80))
    (machine,) = model.machines_
    fit = dataclasses.replace(
        machine.fit, curvature=Last(2), posterior=machine.fit.posterior.parts[2]
    )
    changed = with_ensemble(model, machines=(dataclasses.replace(machine, fit=fit),))
    save(changed, tmp_path / "model.tlace")
    again = load(tmp_path / "model.tlace")
    for a, b in zip(changed.predict(X, True), again.predict(X, True), strict=True):
        np.testing.assert_array_equal(a, b)
    beyond = dataclasses.replace(fit, curvature=Last(3))
    wrong = with_ensemble(model, machines=(dataclasses.replace(machine, fit=beyond),))
    with pytest.raises((ModelFileError, IndexError)):
        save(wrong, tmp_path / "wrong.tlace")
