"""Model files: the same to the bit, whole or refused, and nothing in them is ever run."""

import dataclasses
import datetime
import errno
import hashlib
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.exceptions import ConvergenceWarning

import tensorlace
from tensorlace import (
    Categorical,
    Datetime,
    InputError,
    ModelFileError,
    Ordinal,
    Periodic,
    TNKMRegressor,
    TNKMRegressorCV,
    load,
    save,
)
from tensorlace.machines import pruning
from tensorlace.model_file import files as model_file
from tensorlace.model_file.codec import Decoder, Encoder
from tensorlace.model_file.container import seal, strict_json, unseal
from tensorlace.model_file.schema import ATTRIBUTES, CHOSEN, CLASSES, check_state
from tensorlace.model_file.state import state_of
from tensorlace.model_file.type_check import conforms, hints
from tensorlace.predictive.conformal import Calibration
from tests.helpers import golden
from tests.helpers.models import with_ensemble, with_model, with_record


def named(value):
    """Name of a case that does not change from run to run."""
    return repr(value).split(" at 0x")[0][:30]


N = 40
rng = np.random.default_rng(0)
X = rng.uniform(-2, 3, size=(N, 3))
y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(N)


def fitted(X=X, y=y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"rank": 2, "n_basis": 3, "max_sweeps": 4, "random_state": 3, "n_jobs": 1, **params}
        return TNKMRegressor(**how).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fitted(X[:, :1], rank=1, n_basis=2, basis="polynomial", warp="standardise")


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.tlace"
    save(model, path, notes={"answer": 42})
    return path.read_bytes()


def same(a, b, where="model"):
    """Equal to the bit, of the same types, and laid out the same in memory."""
    if isinstance(a, datetime.datetime):
        assert a == b, where
        return
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        if a.dtype == object:
            same(a.tolist(), b.tolist(), where)
        else:
            assert a.tobytes() == b.tobytes(), where
            assert b.flags.writeable, where
            assert b.flags.aligned, where
        if a.flags.contiguous or a.flags.f_contiguous:
            assert a.flags.c_contiguous == b.flags.c_contiguous, where
    elif dataclasses.is_dataclass(a):
        for f in dataclasses.fields(a):
            same(getattr(a, f.name), getattr(b, f.name), f"{where}.{f.name}")
    elif isinstance(a, dict):
        same(list(a.items()), list(b.items()), where)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for k, pair in enumerate(zip(a, b, strict=True)):
            same(*pair, f"{where}.{k}")
    elif isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b, check_exact=True)
    elif isinstance(a, np.random.RandomState):
        same(a.get_state(), b.get_state(), where)
    else:
        assert repr(a) == repr(b), where


def round_trip(model, tmp_path, rows=X):
    path = tmp_path / "model.tlace"
    save(model, path)
    copy = load(path)
    assert vars(copy).keys() == vars(model).keys()
    for name, value in vars(model).items():
        same(value, getattr(copy, name), name)
    for a, b in zip(model.predict(rows, True), copy.predict(rows, True), strict=True):
        assert a.tobytes() == b.tobytes()
    assert model.predict(rows).tobytes() == copy.predict(rows).tobytes()
    assert model.sample_y(rows, 3).tobytes() == copy.sample_y(rows, 3).tobytes()
    assert np.array_equal(model.extrapolated(rows), copy.extrapolated(rows))
    save(copy, path.with_name("copy.tlace"))
    assert path.with_name("copy.tlace").read_bytes() == path.read_bytes()
    return copy


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


@pytest.mark.parametrize("curvature", ["last", ["block", "diag"]])
def test_models_chosen_by_cross_validation(curvature, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    how = {"ranks": [1, 2], "n_bases": (2, 3), "thresholds": [1e-3, None], "n_repeats": 1}
    model = TNKMRegressorCV(**how, curvature=curvature, tol=1e-2, random_state=0, n_jobs=1)
    model.fit(frame, y)
    path = tmp_path / "model.tlace"
    save(model, path)
    copy = load(path)
    assert type(copy) is TNKMRegressorCV
    for a, b in ((model, copy), (model.best_estimator_, copy.best_estimator_)):
        assert vars(a).keys() == vars(b).keys()
        for name in vars(a).keys() - {"best_estimator_"}:
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
    refuses(nested(lambda s: s.pop(inner)), "best_estimator_: unknown or missing")
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


def test_another_library_reads_the_arrays(model, data, tmp_path):
    path = tmp_path / "model.tlace"
    path.write_bytes(data)
    with safe_open(path, "np") as file:
        assert file.metadata()["format"] == "tensorlace"
        core = file.get_tensor("machines_.0.fit.cores.0")
        digest = file.get_tensor("sha256")
    assert np.array_equal(core, model.machines_[0].fit.cores[0])
    assert digest.tobytes() == hashlib.sha256(data[:-32]).digest()


# ---- damage


def refuses(data, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        model_file._from_bytes(data, "file")
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    assert text.startswith("file")


def test_every_truncation_and_trailing_bytes(data):
    for size in range(len(data)):
        refuses(data[:size])
    for more in (b"\0", b" ", b"\n", data):
        refuses(data + more)


def test_every_single_bit(data):
    assert len(data) < 8000
    changed = bytearray(data)
    for place in range(len(data)):
        for bit in range(8):
            changed[place] ^= 1 << bit
            try:
                unseal(bytes(changed), model_file.VERSION, "file")
            except ModelFileError:
                pass
            else:
                raise AssertionError(f"bit {bit} of byte {place} is not covered")
            changed[place] ^= 1 << bit
    assert bytes(changed) == data


def test_a_pickle_in_disguise(tmp_path, model):
    canary = tmp_path / "canary"

    class Bad:
        def __reduce__(self):
            return (os.mkdir, (str(canary),))

    path = tmp_path / "model.tlace"
    for content in (pickle.dumps(Bad()), pickle.dumps(model)):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a tensorlace model file"):
            load(path)
    assert not canary.exists()


def test_no_way_to_run_code_is_imported():
    for path in Path(model_file.__file__).parent.glob("*.py"):
        text = path.read_text()
        for word in ("import pickle", "pickle.load", "eval(", "exec(", "importlib", "__import__"):
            assert word not in text


def resealed(data, change):
    """The file after ``change(content, arrays)``, with a digest that is right."""
    text, arrays = unseal(data, model_file.VERSION, "file")
    content, arrays = json.loads(text), dict(arrays)
    change(content, arrays)
    return seal(json.dumps(content), model_file.VERSION, arrays)


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
        (lambda c, a: a.update({W: np.zeros(6)}), "posterior, part 0, does not fit"),
        (lambda c, a: a.update({W: np.full(3, np.nan)}), "posterior, part 0, does not fit"),
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


@pytest.mark.parametrize(
    "node",
    [
        {"type": "scalar", "dtype": "object", "value": 1},
        {"type": "scalar", "dtype": "int64", "value": 1e300},
        {"type": "scalar", "dtype": "int8", "value": 1000},
        {"type": "scalar", "dtype": 3, "value": 1},
        {"type": "scalar", "dtype": "datetime64[lightyear]", "value": 1},
        {"type": "float", "value": "1e3"},
        {"type": "float", "value": []},
        {"type": "date", "value": "yesterday"},
        {"type": "datetime", "value": 5},
        {"type": "bytes", "value": "zz"},
        {"type": "dict", "items": [[1, 1], [True, 2]]},
        {"type": "dict", "items": [[[], 1]]},
        {"type": "dict", "items": 5},
        {"type": "tuple", "items": "abc"},
        {"type": "objects", "shape": [10**20], "items": []},
        {"type": "objects", "shape": [-1, 3], "items": [1]},
        {"type": "array", "key": "nowhere", "order": "C"},
        {"type": "array", "key": [], "order": "C"},
        {"type": "array", "key": "one", "order": "C", "triangle": "both"},
        {"type": "array", "key": "one", "order": "K"},
        {"type": "array", "key": "one", "order": "C", "more": 1},
        {"type": "array", "key": "one"},
        {"type": "table", "columns": [["a", [1]], ["b", [1, 2]]]},
        {"type": "table", "columns": [["a", [1]], ["a", [1]]]},
        {"type": "random_state", "state": {"type": "tuple", "items": ["MT19937", [1], 0, 0, 0.0]}},
        {"type": "random_state", "state": []},
        {"type": "interval", "left": 2, "right": 1, "closed": "right"},
        {"type": "interval", "left": 1, "right": 2, "closed": "up"},
        {"type": "Periodic", "fields": {"period": -1.0}},
        {"type": "Ordinal", "fields": {"order": ["a"]}},
        {"type": "tuple", "items": [], "more": 1},
        {},
    ],
    ids=str,
)
def test_hostile_values(node):
    with pytest.raises(ModelFileError) as caught:
        Decoder(CLASSES, {"one": np.ones(1)}).decode(node, "x")
    assert "\n" not in str(caught.value)


def raw(header, body=b"", length=None):
    text = (
        header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    )
    head = (len(text) if length is None else length).to_bytes(8, "little") + text + body
    return head + hashlib.sha256(head).digest()


def header_of(data):
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size : -32]


def entry(dtype, shape, start, stop):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda h: h["__metadata__"].update(version="2"),
            "format version 2, this tensorlace reads",
        ),
        (lambda h: h["__metadata__"].update(version="1" * 999), "format version 1"),
        (lambda h: h["__metadata__"].update(format="other"), "not a tensorlace"),
        (lambda h: h["__metadata__"].update(model=3), "something else than text"),
        (lambda h: h["__metadata__"].update(more="x"), "unknown or missing"),
        (lambda h: h["__metadata__"].pop("model"), "unknown or missing"),
        (lambda h: h["__metadata__"].update(model="[1]"), "no JSON object"),
        (lambda h: h["__metadata__"].update(model='{"a": 1, "a": 2}'), "twice"),
        (lambda h: h["__metadata__"].update(model='{"a": NaN}'), "NaN is no finite"),
        (lambda h: h["__metadata__"].update(model='{"a": -Infinity}'), "Infinity is no finite"),
        (lambda h: h["__metadata__"].update(model='{"a": 1e999}'), "1e999 is no finite"),
        (lambda h: h["__metadata__"].update(model='{"a": ' + "9" * 5000 + "}"), "cannot be read"),
        (lambda h: h["__metadata__"].update(model="[" * 10**6), "nested too deeply"),
        (lambda h: h["__metadata__"].update(model='{"a":' * 10**5), "nested too deeply"),
        (lambda h: h.pop("sha256"), "not the rest of the file"),
        (lambda h: h.update(more=entry("F64", [10**18], 0, 8 * 10**18)), "not where its size"),
        (lambda h: h.update(more=entry("F64", [2**62, 4], 0, 0)), "not where its size"),
        (lambda h: h.update(more=entry("F64", [-1], 0, 0)), "no valid dtype or shape"),
        (lambda h: h.update(more=entry("F64", [True], 0, 8)), "no valid dtype or shape"),
        (lambda h: h.update(more=entry("F64", [0] * 99, 0, 0)), "no valid dtype or shape"),
        (lambda h: h.update(more=entry("O", [1], 0, 8)), "no valid dtype or shape"),
        (lambda h: h.update(more=5), "unknown or missing entries"),
        (lambda h: h["sha256"].update(data_offsets=[0, 32]), "not where its size"),
        (lambda h: h["sha256"].update(more=1), "unknown or missing entries"),
    ],
)
def test_hostile_headers(data, change, match):
    header, body = header_of(data)
    change(header)
    refuses(raw(header, body), match)


def test_other_hostile_headers(data):
    header, body = header_of(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    refuses(raw(text, body, length=2**63), "longer than the file")
    refuses(raw(text, body, length=len(text) - 9), "cannot be read")
    refuses(raw(text + b"}", body), "cannot be read")
    refuses(raw(text.replace(b'"sha256"', b'"weights_"'), body), "twice")
    refuses(raw(text, body + b"\0"), "not where its size|not the rest")
    refuses(raw(b"{}"), "not a tensorlace")
    refuses(b"", "not a tensorlace")
    empty = {"__metadata__": header["__metadata__"], "x": entry("F64", [0, 2**62, 2**62], 0, 0)}
    refuses(raw(empty), "no valid dtype or shape")
    flags = {"__metadata__": header["__metadata__"], "x": entry("BOOL", [1], 0, 1)}
    refuses(raw(flags, b"\2"), "neither true nor false")


def test_a_random_state_beyond_its_keys():
    keys = np.zeros(624, dtype=np.uint32)
    for position, size in ((10**9, 624), (625, 624), (-1, 624), (0, 623), (0.5, 624)):
        node = Encoder({}).encode(("MT19937", [0], position, 0, 0.0), "x")
        node["items"][1] = {"type": "array", "key": "k", "order": "C"}
        with pytest.raises(ModelFileError, match="MT19937 has no such state"):
            Decoder({}, {"k": keys[:size]}).decode({"type": "random_state", "state": node}, "x")


def test_deeply_nested_values(data):
    node = 1
    for _ in range(300):
        node = {"type": "tuple", "items": [node]}
    for _ in range(3):
        node = {"type": "tuple", "items": [node] * 2}
    refuses(resealed(data, lambda c, a: c["params"].update(columns=node)))


# ---- what cannot be saved


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


def load_copy(model):
    return model_file._from_bytes(model_file._to_bytes(model, {}), "copy")


@dataclasses.dataclass(frozen=True)
class Unknown:
    period: float = 1.0


@pytest.mark.parametrize(
    "value",
    [
        *(1j, np.complex128(1), np.longdouble(1), np.zeros(2, complex), np.zeros(1, "M8[s]")),
        *(pd.Timestamp(1, unit="ns"), {1}, range(3), len, object(), np.float64, datetime.time(3)),
        np.random.RandomState(np.random.PCG64(0)),
    ],
    ids=named,
)
def test_values_that_no_file_holds(value):
    with pytest.raises(ModelFileError, match=r"x is .*, which a model file cannot hold"):
        Encoder(CLASSES).encode(value, "x")


VALUES = [
    *(None, True, False, 0, -1, 10**40, "", "a\u0000\ud800\U0001f600", b"\0\xff", [], (), {}),
    *(0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan),
    *(np.float32(0.1), np.float64(0.1), np.float16(0.1), np.int8(-3), np.uint64(2**64 - 1)),
    *(np.bool_(True), np.float64("nan"), np.float32("-inf")),
    *(np.datetime64("2026-01-01"), np.datetime64("NaT"), np.datetime64(5, "ns")),
    *(np.timedelta64(5, "m"), np.datetime64("NaT", "us")),
    *(datetime.date(1, 1, 1), datetime.datetime(2026, 1, 1, 2, 3, 4, 5)),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    *([1, (2.0, [3])], {1: "a", "1": "b", (1, 2): None, None: {}}, {True: 1, "True": 2}),
    *(np.zeros((0, 3)), np.array(3.0), np.arange(6).reshape(2, 3), np.array([True, False])),
    *(np.arange(6.0).reshape(2, 3).T, np.arange(24.0).reshape(2, 3, 4).T),
    *(np.triu(np.arange(9.0).reshape(3, 3)), np.tril(np.arange(16, dtype=np.int32).reshape(4, 4))),
    *(np.asfortranarray(np.triu(np.ones((3, 3)))), np.zeros((2, 2)), -np.zeros((2, 2)), np.eye(2)),
    *(np.array([[1.0, 2.0], [-0.0, 3.0]]), np.array([[True, False], [True, True]])),
    *(np.array([np.nan, -0.0, np.inf]), np.array([["a", 1], [None, 2.5]], dtype=object)),
    *(np.arange(3, dtype=np.uint8), np.arange(3, dtype=np.float32)),
    *(pd.Interval(0.1, 2, "both"), Ordinal([1, "b", None]), np.random.RandomState(3)),
    pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", None], "d": [True, False]}),
]


@pytest.mark.parametrize("value", VALUES, ids=named)
def test_values_come_back(value):
    encoder = Encoder(CLASSES)
    node = strict_json(json.dumps({"x": encoder.encode(value, "x")}).encode(), "test")["x"]
    arrays = unseal(seal("", 1, encoder.arrays), 1, "test")[1]
    decoder = Decoder(CLASSES, arrays)
    same(value, decoder.decode(node, "x"))
    assert decoder.unused() == []


def test_big_end_first_and_strides():
    for value in (np.arange(4.0).astype(">f8"), np.arange(12.0)[::-3], np.eye(4)[::2, ::-1]):
        encoder = Encoder({})
        node = encoder.encode(value, "x")
        arrays = unseal(seal("", 1, encoder.arrays), 1, "test")[1]
        assert np.array_equal(Decoder({}, arrays).decode(node, "x"), value)


def test_equal_arrays_are_stored_once():
    encoder = Encoder({})
    encoder.encode([np.ones(3), np.ones(3), np.ones(3, dtype=np.float32), np.ones((3, 1))], "x")
    assert list(encoder.arrays) == ["x.0", "x.2", "x.3"]
    encoder.encode({"a/b": np.zeros(1), "a b": np.ones(1)}, "x")
    assert list(encoder.arrays)[3:] == ["x.a_b", "x.a_b_2"]


@pytest.mark.parametrize(("value", "size"), [(np.triu, 10), (np.tril, 10), (np.asarray, 16)])
def test_of_triangles_one_half_is_stored(value, size):
    for matrix in (value(np.ones((4, 4))), np.asfortranarray(value(np.ones((4, 4))))):
        encoder = Encoder({})
        encoder.encode(matrix, "x")
        assert encoder.arrays["x"].size == size


def test_all_annotations_have_a_rule():
    for cls in CLASSES.values():
        for hint in hints(cls).values():
            assert conforms(object(), hint) in (hint is object, False, True)
            assert not conforms(object(), hint) or hint in (object,)
    for hint in (*ATTRIBUTES.values(), *CHOSEN.values()):
        conforms(None, hint)
    assert conforms({1: 2}, dict[int, int])
    assert not conforms({1: "2"}, dict[int, int])
    assert conforms((1, "a"), tuple[int, str])
    assert not conforms((1,), tuple[int, str])
    assert not conforms("ab", tuple[str, ...])
    assert conforms(3, float)
    assert not conforms(True, float)
    assert not conforms(1, bool)


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
        ({}, ("fit", "cores"), ()),
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


# ---- files and directories


def test_paths_that_cannot_be_read(tmp_path, data):
    with pytest.raises(ModelFileError, match="No such file"):
        load(tmp_path / "missing.tlace")
    with pytest.raises(ModelFileError, match="Is a directory"):
        load(tmp_path)
    with pytest.raises(ModelFileError, match="null"):
        load("a\0b")
    with pytest.raises(ModelFileError, match="is not a file"):
        load("/dev/zero")
    with pytest.raises(TypeError):
        load(0)  # not standard input
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ModelFileError, match="symbolic links"):
        load(tmp_path / "loop")
    (tmp_path / "file").write_bytes(data)
    (tmp_path / "link").symlink_to("file")
    assert load(tmp_path / "link").n_rows_ == N


def test_paths_that_cannot_be_written(tmp_path, model, data):
    with pytest.raises(ModelFileError, match="it is a directory"):
        save(model, tmp_path)
    with pytest.raises(ModelFileError, match="cannot be written: No such file"):
        save(model, tmp_path / "no" / "where.tlace")
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ModelFileError, match="cannot be written: Not a directory"):
        save(model, tmp_path / "file" / "where.tlace")
    with pytest.raises(ModelFileError, match="cannot be written: File name too long"):
        save(model, tmp_path / ("a" * 300))
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_a_link(tmp_path, model):
    (tmp_path / "deep").mkdir()
    link, target = tmp_path / "link.tlace", tmp_path / "deep" / "target.tlace"
    link.symlink_to(target)
    save(model, link)
    assert link.is_symlink()
    assert load(target).n_rows_ == N
    assert sorted(os.listdir(tmp_path)) == ["deep", "link.tlace"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(call, tmp_path, model, data, monkeypatch):
    path = tmp_path / "model.tlace"
    path.write_bytes(data)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.file.close()

        write = full

    if call == "write":
        real = open
        monkeypatch.setattr("tensorlace._atomic.open", lambda *a: Full(real(*a)), raising=False)
    else:
        monkeypatch.setattr(os, call, full)
    with pytest.raises(ModelFileError, match="cannot be written: No space left on device"):
        save(model, path)
    monkeypatch.undo()
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["model.tlace"]


FULL = textwrap.dedent("""
    import os, sys
    import numpy as np
    from tensorlace import ModelFileError, TNKMRegressor, load, save

    path = os.path.join(sys.argv[1], "model.tlace")
    X = np.random.default_rng(0).uniform(size=(60, 2))
    how = {"max_sweeps": 2, "tol": 1.0, "random_state": 0}
    small = TNKMRegressor(rank=1, n_basis=3, **how).fit(X, X[:, 0])
    large = TNKMRegressor(rank=8, n_basis=12, **how).fit(X, X[:, 0])
    save(small, path)
    before = open(path, "rb").read()
    for _ in range(3):
        try:
            save(large, path)
        except ModelFileError as error:
            print(error)
        assert open(path, "rb").read() == before
        assert os.listdir(sys.argv[1]) == ["model.tlace"]
    assert load(path).predict(X).tobytes() == small.predict(X).tobytes()
""")


def test_a_disk_that_is_really_full(tmp_path):
    """A file system in memory of 64 KiB, seen by one process only."""
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && "$@"']
    try:
        subprocess.run([*mount, tmp_path, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    words = [*mount, tmp_path, sys.executable, "-W", "ignore", "-c", FULL, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.endswith("cannot be written: No space left on device") for line in lines)


KILLS = textwrap.dedent("""
    import os, random, resource, signal, sys, time
    from pathlib import Path
    import numpy as np
    from tensorlace import TNKMRegressor, load, save
    from tensorlace._atomic import write_atomically

    folder = sys.argv[1]
    path = os.path.join(folder, "model.tlace")
    X = np.random.default_rng(0).uniform(size=(50, 2))
    models = [
        TNKMRegressor(rank=r, n_basis=3, max_sweeps=2, random_state=r, tol=1.0).fit(X, X[:, 0] * r)
        for r in (1, 2)
    ]
    whole = set()
    for model in models:
        save(model, path)
        whole.add(open(path, "rb").read())
    assert len(whole) == 2

    def child(work):
        pid = os.fork()
        if pid == 0:
            try:
                work()
                os._exit(0)
            except BaseException as error:
                print(type(error).__name__, error)
                sys.stdout.flush()
                os._exit(1)
        return pid

    started, ready = os.pipe()

    def forever():
        os.write(ready, b".")
        while True:
            for data in whole:  # the part of `save` that touches the disk
                write_atomically(Path(path), data)

    random.seed(0)
    for _ in range(200):
        pid = child(forever)
        os.read(started, 1)
        time.sleep(random.uniform(0.0, 0.004))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        with open(path, "rb") as file:
            assert file.read() in whole
    load(path)
    save(models[0], path)
    print("killed 200", os.listdir(folder))
    sys.stdout.flush()

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        save(models[1], path)

    def nobody():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        save(models[1], path)

    def unreadable():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        load(path)

    before = open(path, "rb").read()
    os.waitpid(child(limited), 0)
    os.chmod(folder, 0o555)
    os.waitpid(child(nobody), 0)
    os.chmod(path, 0)
    os.waitpid(child(unreadable), 0)
    os.chmod(folder, 0o755)
    os.chmod(path, 0o644)
    assert open(path, "rb").read() == before
    print(os.listdir(folder))
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_during_save_and_errors_of_the_system(tmp_path):
    # directories of pytest are closed to other users; one below the root of temporary files is not
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", KILLS, folder],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    kills, limited, nobody, unreadable, left = done.stdout.splitlines()
    assert kills == "killed 200 ['model.tlace']"
    assert limited.startswith("ModelFileError")
    assert "cannot be written: File too large" in limited
    assert "cannot be written: Permission denied" in nobody
    assert "cannot be read: Permission denied" in unreadable
    assert left == "['model.tlace']"


def test_leftovers_of_the_dead_are_removed(tmp_path, model, monkeypatch):
    path = tmp_path / "model.tlace"
    left = []
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda self, **how: left.append(self))  # as if killed
        patched.setattr(os, "replace", lambda *pair: None)
        save(model, path)
    assert [p.exists() for p in left] == [True]
    save(model, path)  # the process is alive: this may be the work of another thread
    assert sorted(os.listdir(tmp_path)) == sorted([left[0].name, "model.tlace"])
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left[0].rename(left[0].with_name(left[0].name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")))
    save(model, path)
    assert os.listdir(tmp_path) == ["model.tlace"]


GOLDEN = sorted(golden.DATA.glob("*.tlace"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_all_versions_are_read_for_ever(path):
    _, version, name = path.stem.split("-")
    expected = json.loads((golden.DATA / f"golden-{version}.json").read_text())[name]
    assert path.stat().st_size < 50_000
    found = golden.answers(load(path))
    assert found.keys() == expected.keys()
    for what, value in found.items():
        scale = np.max(np.abs(expected[what]))
        np.testing.assert_allclose(
            value, expected[what], rtol=1e-12, atol=1e-12 * scale, err_msg=what
        )


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
