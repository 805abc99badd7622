"""Fitted models, and what a saved copy of one must be equal in."""

import dataclasses
import datetime
import json
import warnings

import numpy as np
import pandas as pd
import pytest

from tensorlace import ModelFileError, TNKMRegressor, load, save
from tensorlace.model_file import files as model_file
from tensorlace.model_file.container import seal, unseal

N = 40
rng = np.random.default_rng(0)
X = rng.uniform(-2, 3, size=(N, 3))
y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(N)


def fitted(X=X, y=y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        how = {"rank": 2, "n_basis": 3, "max_sweeps": 4, "random_state": 3, "n_jobs": 1, **params}
        return TNKMRegressor(**how).fit(X, y)


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


def refuses(data, match=None):
    with pytest.raises(ModelFileError, match=match) as caught:
        model_file._from_bytes(data, "file")
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    assert text.startswith("file")


def resealed(data, change):
    """The file after ``change(content, arrays)``, with a digest that is right."""
    text, arrays = unseal(data, model_file.VERSION, "file")
    content, arrays = json.loads(text), dict(arrays)
    change(content, arrays)
    return seal(json.dumps(content), model_file.VERSION, arrays)


def load_copy(model):
    return model_file._from_bytes(model_file._to_bytes(model, {}), "copy")
