"""Saved and loaded models are the same to the bit, for every kind of model."""

import datetime
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import tensorlace
from tensorlace import (
    Categorical,
    Datetime,
    InputError,
    Ordinal,
    Periodic,
    TNKMRegressor,
    TNKMRegressorCV,
    load,
    save,
)
from tensorlace.machines import pruning
from tensorlace.model_file import files as model_file
from tests.helpers import golden
from tests.helpers.model_files import N, X, fitted, refuses, resealed, round_trip, same, y
from tests.helpers.models import with_ensemble, with_record

BASES = ("unit_polynomial", "polynomial", "chebyshev", "legendre", "cosine", "sine", "fourier")


@pytest.mark.parametrize("basis", [*BASES, "bspline"])
def test_all_bases(basis, tmp_path):
    round_trip(fitted(basis=basis, n_basis=4, warp="minmax"), tmp_path)


@pytest.mark.parametrize("warp", ["standardise", "minmax", "quantile", "mixed", "identity"])
def test_all_warps(warp, tmp_path):
    round_trip(fitted(basis="chebyshev", warp=warp), tmp_path)


@pytest.mark.parametrize("curvature", ["ggn", "full", "block", "diag", "last"])
@pytest.mark.parametrize("additive", [False, True])
def test_all_curvatures(curvature, additive, tmp_path):
    round_trip(fitted(curvature=curvature, additive=additive), tmp_path)
    if additive and curvature != "last":
        round_trip(fitted(curvature=curvature, additive=True, rank=0), tmp_path)


def test_posterior_of_more_weights_than_rows(tmp_path):
    copy = round_trip(fitted(rank=4, n_basis=6), tmp_path)
    assert type(copy.machines_[0].fit.posterior).__name__ == "LowRank"


@pytest.mark.parametrize(
    "params",
    [
        {"rotate": True, "threshold": 1e-3, "relative_threshold": True},
        {"n_members": 3, "predictive": "sampled", "n_draws": 5},
        {"n_basis": (2, np.int64(3), 4), "basis": ["cosine", "sine", "indicator"]},
        {"n_basis": np.array([2, 3, 4]), "random_state": np.random.RandomState(7)},
        {"solver": "als", "noise_precision": "vi", "prior_precision": np.float32(0.1)},
        {"columns": {0: Periodic(2), "x": Categorical()}, "verbose": True},
        {"row_dtype": "float32", "solver": "als", "grow_rows": False, "tol": 1e-2},
        {"memory_budget": 10**30, "time_budget": 1.5, "core": np.int32(-1), "curvature": "last"},
    ],
)
def test_other_arguments(params, tmp_path):
    X_used = X.copy()
    X_used[:, 2] = X_used[:, 2].round()
    if "columns" in params:
        X_used = pd.DataFrame(X_used, columns=["a", "b", "x"])
    params["verbose"] = 0
    round_trip(fitted(X_used, **params), tmp_path, X_used)


def test_a_model_that_chose_itself(tmp_path):
    model = fitted(rank="auto", n_basis="auto", time_budget=0.5)
    copy = round_trip(model, tmp_path)
    assert len(copy.search_results_) > 1


@pytest.mark.parametrize("curvature", ["ggn", "block", "diag", "last"])
@pytest.mark.parametrize("size", [2, 6])
def test_pruned_models(curvature, size, tmp_path):
    """One term and some functions taken out of Root, LowRank, Blocks and Diagonal."""
    model = fitted(rank=size, n_basis=4, curvature=curvature, additive=curvature != "last")
    alive, kept = np.arange(size) > 0, np.array([True, False, True, True])
    machine = pruning._reduced(model.machines_[0], alive, [kept] * 3)
    model = with_record(with_ensemble(model, machines=(machine,)), n_pruned=machine.n_pruned)
    copy = round_trip(model, tmp_path)
    assert type(copy.machines_[0].columns.columns[0].basis).__name__ == "Subset"


def mixed_table():
    return pd.DataFrame(
        {
            "number": np.where(np.arange(N) % 7 == 0, np.nan, X[:, 0]),
            # half of a pair of surrogates: only a column of objects can hold it
            "text": pd.Series(
                [("a/b", "ü", None, "\ud800")[k % 4] for k in range(N)], dtype=object
            ),
            "flag": [k % 3 == 0 for k in range(N)],
            "whole": pd.Categorical([k % 3 for k in range(N)]),
            "day": pd.Categorical([datetime.date(2026, 1, 1 + k % 4) for k in range(N)]),
            "instant": pd.Categorical(pd.Timestamp("2026-01-01", tz="UTC") for _ in range(N)),
            "bin": pd.cut(X[:, 1], 3),
            "mixed": pd.Series([(True, 2.5, "x", b"y")[k % 4] for k in range(N)], dtype=object),
            "when": pd.date_range("2026-01-01", periods=N, freq="h", tz="Europe/Rome"),
            "size": [("low", "high")[k % 2] for k in range(N)],
            "hour": np.arange(N) % 24,
            "empty": np.full(N, np.nan),
        }
    )


def test_all_kinds_of_columns(tmp_path):
    kinds = {"size": Ordinal(["low", "high"]), "hour": Periodic(24), "mixed": Categorical()}
    frame = mixed_table()
    model = fitted(frame, columns=kinds)
    unseen = frame.iloc[:4].copy()
    unseen["text"] = ["never seen", None, "ü", "a/b"]
    copy = round_trip(model, tmp_path, pd.concat([frame, unseen]))
    assert copy.kinds_ == model.kinds_
    assert [type(k).__name__ for k in copy.kinds_.values()].count("Categorical") == 6


def test_dates_as_text_and_numpy_dates(tmp_path):
    days = np.datetime64("2026-01-01") + np.arange(N)
    for values in (days, days.astype("M8[s]"), days.astype(str)):
        table = np.empty((N, 2), dtype=object)
        table[:, 0], table[:, 1] = values, X[:, 0]
        round_trip(fitted(table, columns={0: Datetime()}), tmp_path, table)


@pytest.mark.parametrize("noise", ["gaussian", "student", "varying", "varying_student"])
def test_all_kinds_of_noise(noise, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 3, size=(120, 2))
    y = X[:, 0] + np.exp(X[:, 1]) * rng.standard_t(3, 120)
    model = fitted(X, y, rank="auto", n_basis=4, time_budget=0.2, noise=noise)
    assert model.noise_.kind == noise
    for machine in model.noise_.machines:  # only their means are asked for
        assert machine.fit.posterior.W.shape[1] == 0
    copy = round_trip(model, tmp_path, X)
    assert copy.predict_interval(X)[0].tobytes() == model.predict_interval(X)[0].tobytes()


def test_calibrated_models(tmp_path):
    model = fitted(n_members=2).calibrate(X[:15], y[:15], sample_weight=np.arange(15) % 3)
    copy = round_trip(model, tmp_path)
    for coverage in (0.5, 0.8):
        for a, b in zip(*(m.predict_interval(X, coverage) for m in (model, copy)), strict=True):
            assert a.tobytes() == b.tobytes()
    facts = model_file.describe(tmp_path / "model.tlace")["about"]
    assert facts["calibrated"] is True


@pytest.mark.parametrize("value", [0.0, 3.5])
def test_equal_targets(value, tmp_path):
    round_trip(fitted(y=np.full(N, value)), tmp_path)


@pytest.mark.parametrize("curvatures", [None, ["block", "diag"]])
@pytest.mark.parametrize("estimator", [None, TNKMRegressor.paper(tol=1e-2, network="tt")])
def test_models_chosen_by_cross_validation(curvatures, estimator, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    how = {"ranks": [1, 2], "n_bases": (2, 3), "thresholds": [1e-3, None], "n_repeats": 1}
    model = TNKMRegressorCV(estimator, **how, curvatures=curvatures, random_state=0, n_jobs=1)
    model.fit(frame, y)
    path = tmp_path / "model.tlace"
    save(model, path)
    copy = load(path)
    assert type(copy) is TNKMRegressorCV
    assert repr(copy.get_params()) == repr(model.get_params())
    for a, b in ((model, copy), (model.best_estimator_, copy.best_estimator_)):
        assert vars(a).keys() == vars(b).keys()
        for name in vars(a).keys() - {"best_estimator_", "estimator"}:
            same(getattr(a, name), getattr(b, name), name)
        assert a.predict(frame).tobytes() == b.predict(frame).tobytes()
    assert copy.machines_[0].fit.cores[0] is copy.best_estimator_.machines_[0].fit.cores[0]
    save(copy, tmp_path / "copy.tlace")
    assert (tmp_path / "copy.tlace").read_bytes() == path.read_bytes()

    def nested(change):
        return resealed(path.read_bytes(), lambda c, a: change(c["state"]))

    inner = "best_estimator_"
    refuses(nested(lambda s: s.update({inner: 3})), "best_estimator_ is no estimator")
    refuses(nested(lambda s: s[inner].update({"class": "TNKMRegressorCV"})), "is no estimator")
    refuses(nested(lambda s: s[inner].update(more=1)), "is no estimator")
    refuses(nested(lambda s: s[inner]["state"].update(n_rows_="3")), "n_rows_ is of the wrong type")
    refuses(nested(lambda s: s[inner]["params"].pop("rank")), "best_estimator_.rank: unknown or")
    refuses(nested(lambda s: s.pop(inner)), "best_estimator_ is no estimator")
    refuses(nested(lambda s: s.pop("best_score_")), "best_score_: unknown or missing")
    refuses(resealed(path.read_bytes(), lambda c, a: c["params"].pop("ranks")), "ranks: unknown")
    refuses(resealed(path.read_bytes(), lambda c, a: c["params"].update(estimator=3)), "unknown or")
    refuses(resealed(path.read_bytes(), lambda c, a: c["params"].update(n_splits=0)), "n_splits")
    refuses(nested(lambda s: s.update(best_index_=-1)), "best_index_ does not fit")


def test_without_training_rows(tmp_path):
    model = fitted()
    path = tmp_path / "model.tlace"
    save(model, path)
    assert model_file.describe(path)["about"]["n_background"] == N
    with_rows = path.read_bytes()
    save(model, path, background=False)
    assert model_file.describe(path)["about"]["n_background"] == 0
    copy = load(path)
    assert all(row.tobytes() in with_rows for row in X)
    assert not any(row.tobytes() in path.read_bytes() for row in X)
    assert copy.predict(X).tobytes() == model.predict(X).tobytes()
    assert copy.relevance_.tobytes() == model.relevance_.tobytes()
    assert str(copy.summary()) == str(model.summary())
    with pytest.raises(InputError, match="saved with background=False, so it has none"):
        copy.partial_effects(0)
    with pytest.raises(InputError, match="saved with background=False, so it has none"):
        tensorlace.EffectsDisplay.from_estimator(copy)
    save(copy, path)  # what it does not have it cannot keep
    same(vars(load(path)), vars(copy))
    save(copy, path, background=False)


def test_streamed_rows_without_names(tmp_path):
    source = tensorlace.sources.ArraySource(X, y)
    model = TNKMRegressor(rank=1, n_basis=3, random_state=0).fit_rows(source)
    round_trip(model, tmp_path)


def test_what_the_file_says(data, tmp_path):
    path = tmp_path / "model.tlace"
    path.write_bytes(data)
    facts = tensorlace.model_file.describe(path)
    assert facts["notes"] == {"answer": 42}
    assert facts["bytes"] == len(data)
    assert facts["about"]["n_rows"] == N
    assert facts["about"]["columns"] == [["column 0", "Numeric()"]]
    assert facts["about"]["tensorlace"] == tensorlace.__version__
    model = load(path)
    assert facts["about"]["log_evidence"] == model.log_evidence_
    assert facts["about"]["noise_std"] == model.noise_precision_**-0.5
    assert facts["about"]["held_out"] is None
    assert facts["about"]["n_background"] == N


def test_what_the_file_says_of_rows_held_out(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 3, size=(80, 2))
    model = fitted(X, X[:, 0] + 0.1 * rng.standard_normal(80), rank="auto", time_budget=0.2)
    save(model, tmp_path / "model.tlace")
    facts = model_file.describe(tmp_path / "model.tlace")["about"]["held_out"]
    assert facts["n_rows"] == 80
    assert facts["log_score"] == model.check_.log_score
    assert facts["dispersion"] == model.check_.dispersion
    assert facts["coverage"] == list(model.check_.coverage)
    assert facts["message"] == str(model.check_)


GOLDEN = sorted(golden.DATA.glob("*.tlace"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_all_versions_are_read_for_ever(path):
    _, version, name = path.stem.split("-")
    expected = json.loads((golden.DATA / f"golden-{version}.json").read_text())[name]
    assert path.stat().st_size < 50_000
    model = load(path)
    found = golden.answers(model)
    if expected.pop("relevance", None) is not None:  # the total Sobol index, at that time
        fitted = model.fitted_model()
        explained = fitted.ensemble.mean(fitted.rows.X).var() / fitted.machines[0].target.scale ** 2
        assert model.relevance_.sum() == pytest.approx(min(explained, 1.0), rel=1e-9)
        assert model.relevance_.min() >= 0.0
    assert found.keys() == expected.keys()
    for what, value in found.items():
        scale = np.max(np.abs(expected[what]))
        np.testing.assert_allclose(
            value, expected[what], rtol=1e-12, atol=1e-12 * scale, err_msg=what
        )


def test_how_fits_ended_is_kept_and_unknown_of_old_files(tmp_path):
    model = fitted(rank=2)
    copy = round_trip(model, tmp_path)
    ended = model.machines_[0].fit.convergence
    assert ended.decrement >= 0.0
    assert copy.machines_[0].fit.convergence == ended
    old = load(golden.DATA / "golden-1-few.tlace")
    assert all(machine.fit.convergence is None for machine in old.machines_)
    assert old.weights == "auto"


def test_golden_files_are_of_this_version():
    here = {path.stem for path in GOLDEN}
    assert {f"golden-{model_file.VERSION}-{name}" for name in ("mixture", "few", "chosen")} <= here
    noise = load(golden.DATA / "golden-1-mixture.tlace").noise_
    assert noise.kind == "varying_student"
    few = load(golden.DATA / "golden-1-few.tlace")
    assert type(few.machines_[0].fit.posterior).__name__ == "LowRank"


def test_loading_makes_no_warning(data, tmp_path):
    path = tmp_path / "model.tlace"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        load(path)


def with_a_wild_row(**params):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (80, 2))
    y = X[:, 0] + 0.1 * rng.standard_normal(80)
    y[5] += 50.0
    settings = {"rank": 1, "n_basis": 3, "noise": "student", "random_state": 0, **params}
    return TNKMRegressor(**settings).fit(X, y), X


@pytest.mark.parametrize("network", ["cpd", "tt"])
def test_a_fit_with_tails_and_its_distrusted_rows(network, tmp_path):
    model, X = with_a_wild_row(network=network)
    save(model, tmp_path / "model.tlace")
    again = load(tmp_path / "model.tlace")
    assert again.machines_[0].fit.degrees == model.machines_[0].fit.degrees < 50.0
    for a, b in zip(
        again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True
    ):
        assert np.array_equal(a, b)
    assert model.distrusted_["row"].tolist() == [5]
    assert again.distrusted_.equals(model.distrusted_)
    assert str(again.summary()) == str(model.summary())
    # without training rows only the number of them is left
    save(model, tmp_path / "few.tlace", background=False)
    few = load(tmp_path / "few.tlace")
    assert len(few.distrusted_) == 0
    assert ("distrusted", "1 row is distrusted") in few.summary().facts
    assert len(model.distrusted_) == 1


@pytest.mark.parametrize("network", ["cpd", "tt"])
def test_files_of_fits_without_tails_are_those_of_before(network, tmp_path):
    model, _ = with_a_wild_row(noise="gaussian", network=network)
    save(model, tmp_path / "model.tlace")
    text = (tmp_path / "model.tlace").read_bytes()
    assert text.count(b"degrees") == 1  # those of the noise
    assert b"distrusted" not in text
