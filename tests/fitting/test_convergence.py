"""How near its end a fit stopped, against dense derivatives and closed forms."""

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.columns.bases import Chebyshev, Cosine
from tensorlace.estimators.messages import FAR
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Run, Start
from tensorlace.laplace.curvature import GGN, Diag, Full
from tensorlace.laplace.precision import Evidence, Fixed
from tensorlace.laplace.prior_groups import LARGEST_PRIOR, SMALLEST_PRIOR, per_column_and_order
from tensorlace.machines.fitted import Convergence, worst
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.sources import ArraySource
from tests.helpers.oracles import (
    CURVATURES,
    gradient,
    jacobian,
    precision_matrix,
    problem,
    vec,
)

BASES = (Chebyshev(3), Cosine(4, 0.6), Chebyshev(2))


def fitted(p, steps=2, **settings):
    known = {
        "rank": 2,
        "solver": GaussNewton(),
        "noise": Fixed(p.beta),
        "prior": Fixed(float(p.g[0])),
        "max_steps": steps,
        **settings,
    }
    with p.rows() as rows:
        return infer(rows, Config(**known), Start(p.network))


@pytest.mark.parametrize("curvature", CURVATURES, ids=repr)
@pytest.mark.parametrize("N", [60, 12], ids=["many rows", "few rows"])
def test_decrement_is_that_of_dense_derivatives(curvature, N):
    p = problem(3, N=N, weighted=N == 60, bases=BASES)
    fit = fitted(p, curvature=curvature)
    end = p.at(fit.network.cores)
    H, at = precision_matrix(end, fit.curvature)
    g = gradient(end)[at]
    values, U = np.linalg.eigh(H)
    kept = values > 0
    expected = np.sqrt(np.sum((U.T @ g)[kept] ** 2 / values[kept]))
    # one core is put at its own end: what is left there is rounding
    scale = 1.0 if not curvature.one_core else 0.0
    assert fit.convergence.decrement == pytest.approx(expected, rel=1e-9, abs=1e-7)
    assert (expected > 1e-4) == bool(scale)


def test_a_newton_step_moves_no_row_further_than_the_bound():
    p = problem(5, N=50, bases=BASES)
    fit = fitted(p, curvature=GGN())
    end = p.at(fit.network.cores)
    H, _ = precision_matrix(end, GGN())
    S = np.linalg.inv(H)
    A, g = jacobian(end.cores, end.phi), gradient(end)
    moved = np.abs(A @ (S @ g))
    std = np.sqrt(np.einsum("np,pq,nq->n", A, S, A))
    ratio = moved / std
    decrement = fit.convergence.decrement
    assert decrement > 0.01
    assert np.all(ratio <= decrement * (1.0 + 1e-9))
    # and is met by a row whose Jacobian is along the gradient
    assert g @ S @ g / np.sqrt(g @ S @ g) == pytest.approx(decrement, rel=1e-9)


def test_a_newton_step_moves_the_rows_by_less_than_a_share_of_the_noise():
    """Root mean square over rows, in units of the noise: λ / √N bounds it, as H ≥ β AᵀA."""
    p = problem(5, N=50, bases=BASES)
    fit = fitted(p, curvature=GGN())
    end = p.at(fit.network.cores)
    H, _ = precision_matrix(end, GGN())
    A, g = jacobian(end.cores, end.phi), gradient(end)
    moved = np.sqrt(p.beta * np.mean((A @ np.linalg.solve(H, g)) ** 2))
    assert 0.0 < moved <= fit.convergence.decrement / np.sqrt(50)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_noise_what_is_left_matters_beside_the_noise_too():
    """An early end is no matter of a tiny deviation: the whole error is far from its end."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (4000, 3))
    y = np.exp(X[:, 0] * X[:, 1]) * (1.0 + X[:, 2])

    def predicted(steps):
        model = TNKMRegressor(rank=4, n_basis=5, basis="legendre", warp="minmax", additive=True)
        model.set_params(prior_groups="column_order", max_sweeps=steps, random_state=0)
        model.fit(X[:3000], y[:3000])
        return model.machines_[0].fit.convergence.decrement, model.predict_dist(X[3000:])

    (decrement, early), (_, late) = predicted(35), predicted(300)
    assert decrement > FAR
    away = np.abs(late.mean - early.mean) / early.std
    assert np.max(away) > 1.0
    error_early, error_late = (np.sqrt(np.mean((d.mean - y[3000:]) ** 2)) for d in (early, late))
    assert error_late < 0.5 * error_early
    assert np.median(late.std) < 0.5 * np.median(early.std)


def test_one_column_in_closed_form():
    """Of a linear model λ is the distance from ridge regression in the norm of H."""
    p = problem(7, D=1, R=1, N=30, bases=(Cosine(5, 0.5),))
    fit = fitted(p, steps=1, rank=1, solver=GaussNewton())
    A = p.phi[0].T
    H = p.beta * A.T @ A + np.diag(p.g)
    ridge = np.linalg.solve(H, p.beta * A.T @ p.y)
    off = fit.network.vector - ridge
    expected = np.sqrt(off @ H @ off)
    assert expected > 1e-3
    assert fit.convergence.decrement == pytest.approx(expected, rel=1e-9)
    assert not fit.convergence.arrived


@pytest.mark.parametrize("solver", [GaussNewton(), MatrixFree(), ALS()], ids=repr)
@pytest.mark.parametrize("curvature", [GGN(), Diag(), Full()], ids=repr)
def test_nothing_is_left_at_the_end(solver, curvature):
    p = problem(2, N=60, bases=BASES)
    near, far = (fitted(p, k, solver=solver, curvature=curvature, tol=1e-9) for k in (5000, 1))
    assert near.convergence.arrived
    assert near.convergence.decrement < 1e-5 < 0.01 < far.convergence.decrement
    assert near.convergence.settled
    assert near.convergence.precision_change == near.convergence.n_precisions == 0


def test_precisions_that_were_still_changing():
    """The last update, by a run that is watched."""
    p = problem(4, N=60, bases=BASES)
    settings = Config(
        rank=2,
        solver=GaussNewton(),
        noise=Evidence(),
        prior=Evidence(),
        groups=per_column_and_order,
        max_steps=25,
    )
    last = None
    with p.rows() as rows:
        run = Run(rows, settings, Start(p.network))
        while True:
            before = (run.beta, run.group_gamma, run.gamma, run.state.network)
            if not run.advance():
                break
            if run.beta != before[0]:
                last, after = before, (run.beta, run.group_gamma)
        fit = infer(rows, settings, Start(p.network))
    (beta, gamma, of_weights, network), (new_beta, new_gamma) = last, after
    A = jacobian(network.balanced(of_weights).cores, p.phi)
    H = beta * A.T @ A + np.diag(vec(of_weights))
    shares = 1.0 - vec(of_weights) * np.diagonal(np.linalg.inv(H))
    inside = (new_gamma > SMALLEST_PRIOR) & (new_gamma < LARGEST_PRIOR)
    alive = inside & (run.groups.total(shares) > 1e-3 * run.groups.count)
    assert 5 < alive.sum() < len(alive)
    ratios = np.append((new_gamma / gamma)[alive], new_beta / beta)
    changes = np.maximum(ratios, 1.0 / ratios) - 1.0
    found = fit.convergence
    assert found.n_precisions == len(changes)
    assert found.precision_change == pytest.approx(changes.max(), rel=1e-9)
    assert found.n_unsettled == np.sum(changes > settings.precision_tol) > 0
    assert not found.settled


def test_a_checkpoint_of_before_says_nothing_of_precisions():
    p = problem(4, N=60, bases=BASES)
    settings = Config(rank=2, solver=GaussNewton(), max_steps=3)

    class Before:
        def load(self):
            with p.rows() as rows:
                run = Run(rows, settings, Start(p.network))
                while run.advance():
                    pass
            return {name: array for name, array in run.snapshot().items() if name != "changes"}

        def save(self, arrays):
            pass

    with p.rows() as rows:
        found = infer(rows, settings, Start(p.network), checkpointer=Before()).convergence
    assert (found.precision_change, found.settled) == (np.inf, False)


def test_a_resumed_fit_says_the_same(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (150, 2))
    y = X[:, 0] * np.sin(3.0 * X[:, 1]) + 0.1 * rng.standard_normal(150)

    def found(steps, **how):
        model = TNKMRegressor(rank=3, max_sweeps=steps, tol=1.0, random_state=0)
        return model.fit_rows(ArraySource(X, y), **how).machines_[0].fit.convergence

    straight = found(40)
    found(40, checkpoint=tmp_path / "fit")
    assert found(40, checkpoint=tmp_path / "fit") == straight


def test_the_worst_of_several():
    a, b = Convergence(0.5, 0.1, 3, 9, arrived=True), Convergence(0.2, 0.4, 1, 12, arrived=False)
    assert worst([a, b]) == Convergence(0.5, 0.4, 3, 12, arrived=False)
    assert worst([a]) == a
    assert worst([]) is None
