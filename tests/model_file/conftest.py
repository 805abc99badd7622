"""A small model and its file, made once."""

import pytest

from tensorlace import save
from tests.helpers.model_files import X, fitted


@pytest.fixture(scope="module")
def model():
    return fitted(X[:, :1], rank=1, n_basis=2, basis="polynomial", warp="standardise")


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.tlace"
    save(model, path, notes={"answer": 42})
    return path.read_bytes()
