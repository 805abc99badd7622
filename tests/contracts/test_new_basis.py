"""A basis and a warp of somebody else: one class and one line each, and every form follows."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import onnxruntime
import pytest

from tensorlace import load, save
from tensorlace.columns.bases.basis import Basis, degree_closure, first
from tensorlace.columns.warps import Warp
from tensorlace.errors import InputError, ModelFileError
from tensorlace.export import onnx_inputs, to_onnx
from tensorlace.fitting.registry import BASES, WARPS
from tensorlace.report.embed import embed
from tests.helpers import basis_contract, member_contract, warp_contract
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.registered import registered
from tests.helpers.reported import ROWS, X, Y, agree, fit


@final
@dataclass(frozen=True)
class Decay(Basis):
    """``exp(-i u)``, whose products are decays again."""

    name: ClassVar[str] = "decay"
    interval: ClassVar[tuple[float, float] | None] = (0.0, 2.0)
    bounded: ClassVar[bool] = False

    def phi(self, u):
        return np.exp(-np.multiply.outer(np.arange(float(self.n)), u))

    def psi(self, u):
        return np.exp(-np.multiply.outer(np.arange(2.0 * self.n - 1), u))

    def expansion(self):
        return degree_closure(self.n)

    def constant(self):
        return first(self.n)

    def portable(self, g, u):
        return g.exp(-u * np.arange(float(self.n))[:, None])


@final
@dataclass(frozen=True)
class SquareRoot(Warp):
    """Square root of the position in the range, 0 below it."""

    low: float
    high: float

    interval: ClassVar[bool] = True

    @classmethod
    def from_summary(cls, s):
        if s.empty:
            raise InputError("give 1 or more rows")
        return cls(s.frame.low, s.frame.high)

    def __call__(self, x):
        return np.sqrt(np.maximum((x - self.low) / (self.high - self.low), 0.0))

    def outside(self, x):
        return (x < self.low) | (x > self.high)

    def portable(self, g, x):
        return g.sqrt(g.maximum((x - self.low) / (self.high - self.low), 0.0))

    def portable_outside(self, g, x):
        return (x < self.low) | (x > self.high)


@final
@dataclass(frozen=True)
class Silent(Basis):
    """A basis that says nothing of a graph."""

    name: ClassVar[str] = "silent"
    interval: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    bounded: ClassVar[bool] = True

    def phi(self, u):
        return np.ones((1, u.size))

    psi = phi

    def expansion(self):
        return np.ones((1, 1, 1))

    def constant(self):
        return np.ones(1)


@pytest.fixture(autouse=True)
def members():
    with (
        registered(BASES, "decay", Decay),
        registered(BASES, "silent", lambda n: Silent(1)),
        registered(WARPS, "root", SquareRoot),
    ):
        yield


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("check", basis_contract.CHECKS, ids=lambda check: check.__name__)
def test_contract_of_bases(check, n):
    check(Decay(n))


@pytest.mark.parametrize("check", warp_contract.CHECKS, ids=lambda check: check.__name__)
def test_contract_of_warps(check):
    check(SquareRoot)


@pytest.mark.parametrize("check", member_contract.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("params", [{"basis": "decay"}, {"warp": "root"}], ids=["basis", "warp"])
def test_fit_stream_save_and_load(check, params, tmp_path):
    check({"warp": "minmax", **params}, tmp_path)


def test_a_file_needs_its_classes(tmp_path):
    path = tmp_path / "model.tlace"
    save(fit(basis=["decay"] * 3), path)
    BASES.remove("decay")
    try:
        with pytest.raises(ModelFileError, match="Decay"):
            load(path)
    finally:
        BASES.register("decay", Decay)
    namesake = type("Cosine", (Decay,), {})
    with registered(BASES, "other", namesake):
        assert type(load(path).machines_[0].columns.columns[0].basis) is Decay
        with pytest.raises(ModelFileError, match=r"a .*\.Cosine, which a model file cannot hold"):
            save(fit(basis=["other"] * 3), path)
    with pytest.raises(ModelFileError, match="Silent"):
        save(fit(basis=["silent"] * 3), path)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("warp", ["minmax", "root"])
def test_predictions_anywhere(javascript, warp, gaps):
    table = X.copy()
    if gaps:
        table[::7, 0] = table[::5, 2] = np.nan
    model = fit(table, Y, basis=["decay"] * 3, warp=[warp] * 3)
    rows = np.concatenate([ROWS, [[np.nan] * 3]])
    live = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    dist = model.predict_dist(rows)
    wanted = (dist.mean, dist.std, dist.epistemic_std, dist.aleatoric_std)
    for got, want in zip(live.run(None, onnx_inputs(model, rows)), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    agree(javascript, model, rows)


def test_without_a_portable_form():
    model = fit(basis=["silent"] * 3)
    for export in (to_onnx, embed):
        with pytest.raises(InputError, match=r"silent basis has no portable form.*portable\(g, u"):
            export(model)
