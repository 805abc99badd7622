"""A fitted model answers as the estimator that holds it, and goes where estimators go."""

import dataclasses
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from tensorlace import InputError, TNKMRegressor, TNKMRegressorCV, load, save
from tensorlace.compact import compact, deviation, n_bytes
from tensorlace.explain.effects import partial_effects
from tensorlace.explain.relevance import relevance_of
from tensorlace.export import onnx_inputs, to_onnx
from tensorlace.machines.fitted_model import FitRecord, FittedModel, holder
from tensorlace.model_file.state import model_of, state_of
from tensorlace.report.embed import embed
from tensorlace.serve.model import ServedModel
from tests.helpers.model_files import same
from tests.helpers.models import with_model

N = 60
RNG = np.random.default_rng(7)
FRAME = pd.DataFrame(
    {
        "size": RNG.uniform(-1, 2, N),
        "shop": RNG.choice(["a", "b"], N),
        "age": RNG.uniform(0, 9, N),
    }
)
Y = FRAME["size"].to_numpy() ** 2 + (FRAME["shop"] == "a") + 0.1 * RNG.standard_normal(N)


def fitted(X=FRAME, y=Y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        how = {"rank": 2, "n_basis": 4, "max_sweeps": 15, "random_state": 0, "n_jobs": 1}
        return TNKMRegressor(**{**how, **params}).fit(X, y)


@pytest.fixture(scope="module", params=["linearized", "sampled"])
def estimator(request):
    model = fitted(FRAME[:40], Y[:40], n_members=2, predictive=request.param, n_draws=7)
    return model.calibrate(FRAME[40:], Y[40:])


def test_it_answers_as_its_estimator(estimator):
    assert holder(estimator) is estimator
    model = estimator.fitted_model()
    assert holder(model).fitted_model() is model
    X = model.encode(FRAME)
    dist, same_dist = estimator.predict_dist(FRAME), model.dist(X)
    assert dist.mean.tobytes() == same_dist.mean.tobytes()
    assert dist.std.tobytes() == same_dist.std.tobytes()
    assert estimator.predict(FRAME).tobytes() == model.mean(X).tobytes()
    for a, b in zip(estimator.predict_interval(FRAME, 0.8), model.interval(dist, 0.8), strict=True):
        assert a.tobytes() == b.tobytes()
    levels = [0.2, 0.5]
    assert (
        estimator.predict_quantiles(FRAME, levels).tobytes()
        == model.quantiles(dist, levels).tobytes()
    )
    assert model.draws(X, 3, np.random.default_rng(0)).shape == (N, 3)
    far = FRAME.assign(size=9.0)
    assert model.extrapolated(model.encode(far)).all()
    assert estimator.extrapolated(far).all()
    assert model.names == tuple(FRAME.columns)
    assert model.kinds == estimator.kinds_
    assert model.record.arguments == estimator.get_params(deep=False)


def test_arguments_that_say_how_to_predict_may_change_after_the_fit(estimator):
    changed = with_model(estimator).set_params(predictive="sampled", n_draws=3, n_jobs=2)
    model = changed.fitted_model()
    assert (model.n_draws, model.threads) == (3, 2)
    assert changed.set_params(predictive="linearized").fitted_model().n_draws == 0
    held = changed.fitted_model()
    how = {"n_draws": held.n_draws, "threads": held.threads, "engine": held.ensemble.engine}
    assert held.predicting(**how) is held


def test_it_is_handed_on_as_a_whole():
    """What does not change is the same object, from the fit to the last copy."""
    model = fitted()
    whole = model.fitted_model()
    assert whole.ensemble is model.model_.ensemble
    assert model.machines_ is whole.machines
    other = with_model(model, calibration=None)
    assert other.model_.ensemble is whole.ensemble
    assert model.predict(FRAME).tobytes() == other.predict(FRAME).tobytes()


def test_learnt_attributes_cannot_be_set():
    model = fitted()
    for name in ("machines_", "weights_", "noise_", "kinds_", "calibration_", "relevance_"):
        with pytest.raises(AttributeError):
            setattr(model, name, None)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (FRAME[["size", "shop"]], "X has 2 columns; the model was fitted to 3: size, shop, age"),
        (FRAME[["shop", "size", "age"]], "X has shop, size, age; the model was fitted to 3"),
        (np.zeros(3), r"X has shape \(3,\): give a table of 3 columns"),
        (FRAME.assign(age=np.inf), "infinity in column 'age', row 0"),
    ],
)
def test_other_tables_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        fitted().fitted_model().encode(table)


def test_rows_by_position():
    model = fitted().fitted_model()
    rows = model.encode(FRAME)
    assert np.array_equal(model.encode(FRAME.to_numpy(dtype=object)), rows)
    assert np.array_equal(model.encode(FRAME.to_numpy().tolist()), rows)
    numbers = fitted(FRAME[["size", "age"]]).fitted_model()
    assert np.array_equal(numbers.encode(FRAME[["size", "age"]].to_numpy()), rows[:, [0, 2]])


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match="a list is no fitted model: give a fitted TNKMRegressor"):
        holder([])
    with pytest.raises(NotFittedError):
        holder(TNKMRegressor()).fitted_model()
    assert not hasattr(TNKMRegressor(), "machines_")


def test_applications_take_either():
    estimator = fitted()
    model = estimator.fitted_model()
    small = compact(model, 3000)
    assert isinstance(small, FittedModel)
    assert n_bytes(small) == n_bytes(compact(estimator, 3000)) <= 3000
    X = model.encode(FRAME)
    expected = compact(estimator, 3000).predict_dist(FRAME)
    assert deviation(small.dist(X), expected).largest_std == 0.0
    assert json.dumps(embed(model)) == json.dumps(embed(estimator))
    graphs = [to_onnx(m).SerializeToString() for m in (model, estimator)]
    assert graphs[0] == graphs[1]
    for key, tensor in onnx_inputs(model, FRAME).items():
        assert tensor.tolist() == onnx_inputs(estimator, FRAME)[key].tolist()
    row = FRAME.iloc[0].to_list()
    answers = [
        served.predict(served.values.from_rows([row]), 0.9)
        for served in (ServedModel.of(m, "model") for m in (model, estimator))
    ]
    same(*answers)
    effect = partial_effects(model, "size")
    assert effect.mean.tobytes() == estimator.partial_effects("size").mean.tobytes()
    assert relevance_of(model).tobytes() == estimator.relevance_.tobytes()


def test_a_model_is_saved_as_its_estimator(tmp_path):
    estimator = fitted()
    save(estimator, tmp_path / "estimator.tlace")
    save(estimator.fitted_model(), tmp_path / "model.tlace")
    data = (tmp_path / "model.tlace").read_bytes()
    assert data == (tmp_path / "estimator.tlace").read_bytes()
    assert type(load(tmp_path / "model.tlace")) is TNKMRegressor


def test_saving_leaves_a_model_as_it_is(tmp_path):
    estimator = fitted()
    save(estimator, tmp_path / "model.tlace", background=False)
    assert estimator.model_.record.relevance is None
    assert estimator.model_.rows is not None


def test_a_file_holds_every_field():
    model = fitted().fitted_model()
    model = model.with_relevance(relevance_of(model))
    again = model_of(model.record.estimator, model.record.arguments, state_of(model))
    for field in dataclasses.fields(FitRecord):
        same(getattr(model.record, field.name), getattr(again.record, field.name), field.name)
    how_to_predict = {"n_draws", "threads"}
    for field in dataclasses.fields(FittedModel):
        if field.name not in how_to_predict | {"record"}:
            same(getattr(model, field.name), getattr(again, field.name), field.name)


def test_what_folds_have_chosen_stands_for_itself(tmp_path):
    X = FRAME[["size"]]
    single = TNKMRegressor.paper(tol=1e-1)
    chosen = TNKMRegressorCV(single, ranks=[1], n_bases=[2, 3], n_repeats=1, random_state=0)
    model = chosen.fit(X, Y).fitted_model()
    assert model.record.estimator == "TNKMRegressor"
    assert model.mean(model.encode(X)).tobytes() == chosen.predict(X).tobytes()
    save(model, tmp_path / "model.tlace")
    np.testing.assert_array_equal(load(tmp_path / "model.tlace").predict(X), chosen.predict(X))
