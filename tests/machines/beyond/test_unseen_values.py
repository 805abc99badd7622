"""A value that no training row had is a further function that no training row had."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace.columns.bases import BSpline, Chebyshev, Cosine, Indicator, Levels, Missing
from tensorlace.columns.columns import Column, Columns
from tensorlace.columns.warps import Codes, Identity, Standardise
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Start
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Last
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Fixed
from tensorlace.laplace.prior_groups import one_group
from tensorlace.machines.beyond.unseen_values import prior_variances
from tensorlace.machines.machine import KernelMachine
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.sum import Sum
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.gauss_newton import GaussNewton
from tests.helpers import oracles
from tests.helpers.oracles import error

BETA, GAMMA = 6.0, 0.8
EVERY_CURVATURE = pytest.mark.parametrize("curvature", oracles.CURVATURES, ids=repr)
N, LEVELS = 60, 3
MISSING = np.nan


class Further:
    """A basis and one more function, which is 1 where the basis knows nothing, and 0 elsewhere."""

    def __init__(self, basis):
        self.basis, self.n = basis, basis.n + 1

    def phi(self, u):
        if isinstance(self.basis, Missing):
            return np.vstack([self.basis.phi(u), np.zeros(u.size)])
        new = np.isnan(u) | (u < 0) & isinstance(self.basis, Levels | Indicator)
        phi = self.basis.phi(np.where(new, 0.0, u))
        phi[:, new] = self.basis.typical()[:, None]
        return np.vstack([phi, new])


class Trained:
    """A machine on three columns, and the same with a further function in each of them."""

    def __init__(self, curvature, bases=None, R=2):
        bases = bases or BASES[0]
        rng = np.random.default_rng(0)
        u = np.stack(
            [
                rng.integers(0, LEVELS, N).astype(float)
                if isinstance(b, Levels | Indicator)
                else rng.uniform(0, 1, N)
                for b in bases
            ]
        )
        u[1, ::9] = MISSING if isinstance(bases[1], Missing) else u[1, ::9]
        start = [np.asarray(0.5 * rng.standard_normal((R, b.n)) + b.constant()) for b in bases]
        truth = [np.asarray(rng.standard_normal((R, b.n)) + b.constant()) for b in bases]
        phi = [b.phi(x) for b, x in zip(bases, u, strict=True)]
        y = oracles.response(truth, phi) + 0.3 * rng.standard_normal(N)
        target = Standardise.fit(y)
        settings = Config(
            rank=R,
            solver=GaussNewton(),
            curvature=curvature,
            truncation=Truncation(),
            noise=Fixed(BETA),
            prior=Fixed(GAMMA),
            groups=one_group,
            max_steps=500,
            tol=1e-13,
        )
        with MemoryRows(u, target(y), None, bases, block_rows=16) as rows:
            fit = infer(rows, settings, Start(CPD(tuple(start))))
        columns = tuple(
            Column(Codes(np.arange(float(LEVELS))), b, f"x{d}")
            if isinstance(b, Levels | Indicator)
            else Column(Identity.fit(x[~np.isnan(x)]), b, f"x{d}")
            for d, (b, x) in enumerate(zip(bases, u, strict=True))
        )
        self.machine = KernelMachine(Columns(columns), target, fit)
        self.further = tuple(Further(b) for b in bases)
        self.cores = tuple(np.pad(V, [(0, 0), (0, 1)]) for V in fit.cores)
        gamma = tuple(np.full(V.shape, GAMMA) for V in self.cores)
        self.problem = oracles.Problem(self.further, u, target(y), None, self.cores, BETA, gamma)

    def moments(self, u):
        """Mean and covariance of the linearised model with further functions, dense."""
        curvature = self.machine.fit.curvature
        H, at = oracles.precision_matrix(self.problem, curvature)
        S = oracles.truncated(H, 1e-12 * np.linalg.norm(H, 2))[0]
        # the weights of further functions have a prior, whichever cores the curvature looks at
        ends = np.cumsum([V.size for V in self.cores]) - 1
        new = np.concatenate(
            [end - V.shape[1] * np.arange(len(V)) for end, V in zip(ends, self.cores, strict=True)]
        )
        full = np.zeros((self.problem.v.size,) * 2)
        full[np.ix_(at, at)] = S
        full[new] = full[:, new] = 0.0
        full[new, new] = 1.0 / GAMMA
        phi = [b.phi(x) for b, x in zip(self.further, u, strict=True)]
        G = oracles.jacobian(self.cores, phi)
        return oracles.response(self.cores, phi), G @ full @ G.T, full, S, at, new


NEW = np.array(
    [
        [0.0, 1.0, -1.0, MISSING, 0.0, -1.0, 2.0, -1.0],
        [0.3, 0.9, 0.3, 0.3, MISSING, MISSING, 0.5, 0.3],
        [0.2, 0.7, 0.2, 0.2, 0.2, MISSING, MISSING, 0.9],
    ]
)
RAW = np.where(NEW < 0, 77.0, NEW).T  # a category that no row had
BASES = [
    (Levels(LEVELS + 1), Cosine(3), BSpline(5)),
    (Indicator(LEVELS), Chebyshev(3), Cosine(4, lengthscale=0.5)),
    (Levels(LEVELS + 1), Missing(Cosine(3)), BSpline(5)),
]


@EVERY_CURVATURE
@pytest.mark.parametrize("bases", BASES, ids=["levels", "indicator", "missing"])
def test_variance_of_a_model_with_the_function_in_it(curvature, bases):
    t = Trained(curvature, bases)
    mean, covariance, *_ = t.moments(NEW)
    found, target = t.machine.linearized(RAW), t.machine.target
    assert error(found.mean, target.location + target.scale * mean) < 1e-14
    assert error(found.epistemic_std**2, target.scale**2 * np.diag(covariance)) < 1e-11
    assert error(t.machine.mean(RAW), found.mean) < 1e-14


@pytest.mark.parametrize("curvature", [GGN(), BlockDiagonal()], ids=repr)
def test_dense_posterior_of_the_new_weights_is_their_prior(curvature):
    """What the test above takes for granted where the curvature looks at all cores."""
    t = Trained(curvature)
    *_, S, at, new = t.moments(NEW)
    where = np.searchsorted(at, new)
    others = np.delete(np.arange(len(at)), where)
    assert error(S[np.ix_(where, where)], np.eye(len(new)) / GAMMA) < 1e-13
    assert np.max(np.abs(S[np.ix_(where, others)])) < 1e-13


@EVERY_CURVATURE
def test_unseen_level_is_less_sure_than_any_other(curvature):
    """Not a theorem: where the other columns make a product vanish, no category matters."""
    t = Trained(curvature)
    rng = np.random.default_rng(1)
    for x in rng.uniform(0, 1, (20, 2)):
        seen = np.column_stack([np.arange(LEVELS), np.tile(x, (LEVELS, 1))])
        rows = np.vstack([seen, [77.0, *x], [np.nan, *x]])
        *known, unseen, missing = t.machine.linearized(rows).epistemic_std
        assert np.isclose(unseen, missing, rtol=1e-14, atol=0.0)  # another place in a block
        assert curvature in (Last(1), Last(2)) or unseen > max(known)


@pytest.mark.parametrize("linearized", [False, True])
@pytest.mark.parametrize("bases", BASES, ids=["levels", "indicator", "missing"])
def test_draws_know_it_too(linearized, bases):
    t = Trained(GGN(), bases)
    n = 20_000
    f = t.machine.functions(RAW, n, np.random.default_rng(3), linearized=linearized)
    mean, covariance, full, *_ = t.moments(NEW)
    if linearized:  # jointly: two rows with the same new category share what nobody knows of it
        assert np.max(np.abs(oracles.covariance_z(f - mean[:, None], covariance))) < 4.5
        return
    # the network itself, with all its weights drawn, new ones included
    m, shapes = 4000, [V.shape for V in t.cores]
    L = np.linalg.cholesky(full + 1e-14 * np.eye(len(full)))
    draws = t.problem.v[:, None] + L @ np.random.default_rng(4).standard_normal((len(L), m))
    phi = [b.phi(x) for b, x in zip(t.further, NEW, strict=True)]
    g = np.stack([oracles.response(oracles.unvec(v, shapes), phi) for v in draws.T])
    assert np.all(np.abs(f.mean(axis=1) - g.mean(axis=0)) < 4.5 * g.std(axis=0) / np.sqrt(m))
    assert np.allclose(f.std(axis=1), g.std(axis=0), rtol=0.15)


@pytest.mark.parametrize("linearized", [False, True])
def test_other_rows_do_not_see_it(linearized):
    t = Trained(GGN())
    rng = [np.random.default_rng(5) for _ in range(2)]
    a = t.machine.functions(RAW, 7, rng[0], linearized=linearized)
    b = t.machine.functions(RAW[:2], 7, rng[1], linearized=linearized)
    assert error(a[:2], b) < 1e-14
    assert rng[0].random() == rng[1].random()
    sampled = t.machine.sampled(RAW, 500, np.random.default_rng(6))
    assert np.all(sampled.epistemic_std[[2, 3, 4]] > sampled.epistemic_std[0])


def test_prior_variances():
    gamma = (np.array([[9.0, 2.0, 4.0], [9.0, 1.0, 1.0]]), np.array([[5.0], [2.0]]))
    products = CPD(tuple(np.ones(g.shape) for g in gamma))
    found = prior_variances(products, gamma)
    assert [v.tolist() for v in found] == [[0.375, 1.0], [0.2, 0.5]]
    additive = np.array([[7.0, 4.0, 4.0, 10.0]])  # one more term, of all columns
    found = prior_variances(Sum((products, Additive.zero((3, 1)))), (*gamma, additive))
    assert [v.tolist() for v in found] == [[0.375, 1.0, 0.25], [0.2, 0.5, 0.1]]
    flat = np.zeros((1, 3))
    assert prior_variances(CPD((flat,)), (flat,))[0].tolist() == [1e10]


def test_flat_prior_leaves_no_infinity():
    t = Trained(GGN())
    flat = replace(t.machine.fit, gamma=tuple(0.0 * g for g in t.machine.fit.gamma))
    std = replace(t.machine, fit=flat).linearized(RAW).epistemic_std
    assert np.all(np.isfinite(std))
    assert np.all(std[2:] > 1e3 * std[:2].max())
