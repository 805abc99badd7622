"""What the evidence switches off is gone, and nobody can tell from the predictions."""

import warnings
from functools import cache
from importlib import import_module

import numpy as np
import pytest

from tensorlace import InputError, TNKMRegressor
from tensorlace.columns.bases import (
    BSpline,
    Chebyshev,
    Cosine,
    Fourier,
    Legendre,
    Levels,
    Missing,
    Polynomial,
    Sine,
    Subset,
    UnitPolynomial,
)
from tensorlace.fitting.config import Config
from tensorlace.fitting.rank_reduction import evidence_without
from tensorlace.fitting.run import Run, Start
from tensorlace.laplace.curvature import GGN
from tensorlace.laplace.evidence import log_evidence
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Root
from tensorlace.laplace.precision import Evidence
from tensorlace.laplace.prior_groups import LARGEST_PRIOR, per_rank_term
from tensorlace.machines.pruning import (
    NEGLIGIBLE,
    effects_of_functions,
    effects_of_terms,
    prune,
)
from tensorlace.networks.cpd import jacobian, predict
from tensorlace.solvers.gauss_newton import GaussNewton
from tests.helpers.oracles import problem

FITTING = import_module("tensorlace.fitting.fit_machines")  # its function has the same name

# --- a basis of some functions ---

WHOLE = [
    Cosine(6, 0.4),
    Legendre(6),
    Chebyshev(6),
    Fourier(6),
    Polynomial(6),
    Sine(6),
    UnitPolynomial(6),
    BSpline(6),
    Levels(6),
    Missing(Cosine(5)),
]


@pytest.mark.parametrize("base", WHOLE, ids=lambda b: b.name)
@pytest.mark.parametrize("which", [(0, 2, 3), (0, 1, 2), (0,), (1, 5), (0, 1, 2, 3, 4, 5)], ids=str)
def test_a_subset_has_the_functions_kept_and_their_products(base, which):
    u = np.linspace(-0.9, 0.9, 20)
    if isinstance(base, Levels):
        u = np.arange(-1.0, 6.0)
    if isinstance(base, Missing):
        u[3] = np.nan
    for basis in (
        Subset(base, which),
        Subset.of(base, which),
        Subset.of(Subset(base, which), (0,)),
    ):
        kept = which[: basis.n]
        phi = basis.phi(u)
        assert basis.n == len(kept)
        assert phi.flags.c_contiguous
        np.testing.assert_allclose(phi, base.phi(u)[list(kept)], rtol=1e-13, atol=1e-13)
        products = np.einsum("ijs,sn->ijn", basis.closure(), basis.psi(u))
        np.testing.assert_allclose(products, phi[:, None] * phi, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(basis.typical(), base.typical()[list(kept)], atol=1e-15)
        assert np.array_equal(basis.novel(u), base.novel(u))
        assert basis.bounded == base.bounded
        assert basis.interval == base.interval
    if base.constant()[0] == 1.0 and not np.any(base.constant()[1:]) and 0 in which:
        subset = Subset(base, which)
        assert np.array_equal(subset.constant() @ subset.phi(u), np.ones(u.size))


def test_a_subset_of_the_first_functions_is_no_subset():
    assert Subset.of(Cosine(8, 0.3), (0, 1, 2)) == Cosine(3, 0.3)
    assert Subset.of(Cosine(8), (0, 2)) == Subset(Cosine(3), (0, 2))
    assert Subset.of(BSpline(8), (0, 1)) == Subset(BSpline(8), (0, 1))
    assert hash(Subset(Cosine(3), (0, 2))) == hash(Subset(Cosine(3), (0, 2)))


@pytest.mark.parametrize("which", [(), (1, 0), (0, 0), (0, 6), (-1, 2)])
def test_functions_that_do_not_exist_are_refused(which):
    with pytest.raises(InputError, match="rising numbers from 0 to 5"):
        Subset(Cosine(6), which)


# --- the posterior of the weights that stay ---


def covariance(posterior):
    return posterior.solve(np.eye(posterior.n_weights))


def posteriors():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    yield Root(rng.standard_normal((9, 9)), 0.0)
    yield Root(rng.standard_normal((9, 4)), 0.0, 5)
    yield LowRank(rng.uniform(0.5, 2.0, 9), U, np.array([1e-9, 0.1, 0.5, 1.0]))
    yield LowRank(rng.uniform(0.5, 2.0, 9), np.empty((9, 0)), np.empty(0))
    yield Diagonal(rng.uniform(0.0, 1.0, 9))
    yield Blocks((Root(rng.standard_normal((4, 4)), 0.0), Diagonal(rng.uniform(0.5, 1.0, 5))))


@pytest.mark.parametrize("posterior", list(posteriors()), ids=lambda p: type(p).__name__)
def test_the_marginal_leaves_out_rows_of_the_covariance(posterior):
    which = np.array([1, 0, 1, 1, 0, 1, 1, 0, 1], dtype=bool)
    found, expected = posterior.marginal(which, (4, 5)), covariance(posterior)[which][:, which]
    np.testing.assert_allclose(covariance(found), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.variances(), np.diag(expected), rtol=1e-12, atol=1e-13)
    lam = np.linalg.eigvalsh(expected)
    lam = lam[lam > 1e-10]
    if not isinstance(posterior, LowRank):
        assert found.logdet == pytest.approx(-np.log(lam).sum(), rel=1e-9)


# --- terms that the evidence does without ---


@pytest.mark.parametrize("additive", [False, True])
def test_evidence_without_a_term_is_that_of_the_model_without_it(additive):
    """Against the Gaussian evidence of the other terms, linearised with a Jacobian of their own."""
    p = problem(3, D=3, R=3, N=60, weighted=True)
    if additive:
        size = sum(V.shape[1] for V in p.cores)
        p = p.at((*p.cores, 0.1 * np.random.default_rng(0).standard_normal((1, size))))
    cores = p.cores
    settings = Config(
        rank=3,
        solver=GaussNewton(),
        curvature=GGN(),
        truncation=Truncation(),
        noise=Evidence(),
        prior=Evidence(),
        groups=per_rank_term,
    )
    gammas = np.array([0.5, 1.0, 2.0, 4.0])[: 3 + additive]
    with p.rows() as rows:
        by_term = [np.repeat(gammas[:3, None], V.shape[1], axis=1) for V in cores[:3]]
        rest = [np.full(V.shape, gammas[3]) for V in cores[3:]]
        run = Run(rows, settings, Start(p.network, 3.0, (*by_term, *rest)))
        found = evidence_without(run)
    for r in range(3):
        fewer = p.network.without_term(r)
        network = p.at(fewer).network
        A = network.jacobian(p.phi).T
        v = np.concatenate([V.ravel() for V in fewer])
        left = [np.repeat(np.delete(gammas[:3], r), V.shape[1]) for V in fewer[:3]]
        gamma = np.concatenate([*left, *(np.full(V.size, gammas[3]) for V in fewer[3:])])
        target = p.y - network.response(p.phi) + A @ v  # of the linear model in all its weights
        H = 3.0 * (A.T * p.w) @ A + np.diag(gamma)
        best = np.linalg.solve(H, 3.0 * (A.T * p.w) @ target)
        rss = np.sum(p.w * (target - A @ best) ** 2)
        logdet = np.linalg.slogdet(H)[1]
        expected = log_evidence(p.w.sum(), rss, 3.0, best, gamma, logdet, 0)
        assert found[r] == pytest.approx(expected, rel=1e-11)


# --- fits ---

RNG = np.random.default_rng(5)
X = RNG.uniform(-1.0, 1.0, (250, 6))
NOISE = 0.1
PRODUCT = np.sin(3.0 * X[:, 0]) * (1.5 + X[:, 1]) + NOISE * RNG.standard_normal(len(X))
WAVES = np.sin(3.0 * X[:, 0]) * X[:, 1] + X[:, 1] + NOISE * RNG.standard_normal(len(X))
NEW = RNG.uniform(-1.0, 1.0, (300, 6))

CASES = {
    "rank": (PRODUCT, 3, {"rank": 6, "basis": "legendre", "warp": "minmax"}),
    "order": (PRODUCT, 3, {"rank": 1, "basis": "legendre", "warp": "minmax", "n_basis": 9}),
    "column_order": (WAVES, 6, {"rank": 3}),
}


def count(machine):
    return sum(V.size for V in machine.fit.cores)


@cache
def fitted(groups, *, pruned=True, **options):
    y, D, chosen = CASES[groups]
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        if not pruned:
            patch.setattr(FITTING, "prune", lambda machine: machine)
        model = TNKMRegressor(prior_groups=groups, random_state=1, **{**chosen, **options})
        return model.fit(X[:, :D], y)


def assert_same(small, large, table):
    """Means and deviations within what pruning may change."""
    a, b = small.linearized(table), large.linearized(table)
    allowed = NEGLIGIBLE * large.noise_std * large.target.scale
    assert np.max(np.abs(a.mean - b.mean)) < allowed
    # weights with the largest prior precision take their last bit of variance along
    assert np.max(np.abs(a.epistemic_std - b.epistemic_std)) < 50 * allowed
    np.testing.assert_allclose(small.mean(table), a.mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("groups", "options"),
    [
        ("rank", {}),
        ("order", {}),
        ("column_order", {}),
        ("column_order", {"curvature": "last", "rank": 1, "max_sweeps": 60}),
    ],
    ids=str,
)
def test_pruned_machines_are_smaller_and_predict_the_same(groups, options):
    small = fitted(groups, **options)
    (large,) = fitted(groups, pruned=False, **options).machines_
    (machine,) = small.machines_
    table = NEW[:, : CASES[groups][1]]
    assert_same(machine, large, table)
    assert small.n_pruned_ == machine.n_pruned > 0
    assert machine.fit.posterior.n_weights <= large.fit.posterior.n_weights
    if groups == "rank":
        assert len(machine.fit.cores[0]) == 1  # the truth is one product, of six that were offered
        return
    assert count(machine) + machine.n_pruned == count(large)
    draws = [m.functions(table, 4000, np.random.default_rng(0), True) for m in (machine, large)]
    np.testing.assert_allclose(draws[0].std(axis=1), draws[1].std(axis=1), rtol=0.08, atol=1e-4)


def test_terms_that_only_fit_noise_are_worth_less_than_nothing():
    many, one = fitted("rank"), fitted("rank", rank=1)
    assert many.log_evidence_ == pytest.approx(one.log_evidence_, abs=1e-3)
    assert many.n_pruned_ == 5 * 3 * 6
    assert one.n_pruned_ == 0


def test_columns_that_are_switched_off_keep_their_constant_only():
    (machine,) = fitted("column_order").machines_
    (large,) = fitted("column_order", pruned=False).machines_
    off = [d for d, g in enumerate(large.fit.gamma) if np.all(g[:, 1:] > 0.5 * LARGEST_PRIOR)]
    assert set(off) <= {2, 3, 4, 5}
    assert len(off) >= 2
    assert [machine.columns.sizes[d] for d in off] == [1] * len(off)
    assert min(machine.columns.sizes[:2]) >= 3
    assert np.array_equal(machine.columns.columns[off[0]].phi(np.array([0.1, 0.7])), [[1.0, 1.0]])
    moved = NEW.copy()
    moved[:, off] = 0.0
    assert np.array_equal(machine.linearized(moved).mean, machine.linearized(NEW).mean)


def test_orders_that_the_truth_has_not_are_gone():
    """1.5 + x is a polynomial of degree 1, and a column without effect one of degree 0."""
    (machine,) = fitted("order").machines_
    (large,) = fitted("column_order").machines_
    assert machine.columns.sizes[1] <= 4
    assert machine.columns.sizes[2] <= 3
    assert count(large) < 3 * 6 * 6


def test_bounds_hold():
    """No term and no function has more effect anywhere than is said of it."""
    (machine,) = fitted("column_order").machines_
    u = machine.columns.variables(X)
    phi, cores = list(machine.columns.features(u)), machine.fit.cores
    f, noise = predict(cores, phi), machine.noise_std
    G = jacobian(cores, phi)
    starts = np.cumsum([0, *(V.size for V in cores)])
    everything = np.ones(len(cores[0]), dtype=bool)
    for r, bound in enumerate(effects_of_terms(machine)):
        own = f - predict(machine.fit.network.without_term(r), phi)
        assert np.max(np.abs(own)) <= bound + 1e-12 * noise
    for d, bounds in enumerate(effects_of_functions(machine, everything)):
        for i, bound in enumerate(bounds):
            V = cores[d].copy()
            V[:, i] = 0.0
            change = f - predict((*cores[:d], V, *cores[d + 1 :]), phi)
            mask = np.zeros(len(G), dtype=bool)
            mask[starts[d] + np.arange(len(V)) * V.shape[1] + i] = True
            std = np.sqrt(machine.fit.posterior.quad(G * mask[:, None]))
            assert np.max(np.abs(change) + std) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("curvature", ["ggn", "block", "diag", "full"])
def test_additive_parts_and_all_curvatures(curvature):
    """A budget of a whole noise standard deviation is kept, too."""
    options = {"additive": True, "curvature": curvature, "rank": 2, "n_basis": 4, "max_sweeps": 40}
    (large,) = fitted("column_order", pruned=False, **options).machines_
    small = prune(large, 1.0)
    assert small.n_pruned == count(large) - count(small) > 0
    assert small.fit.cores[-1].shape == (1, sum(small.columns.sizes))
    assert small.fit.posterior.n_weights == count(small)
    a, b, noise = small.linearized(X), large.linearized(X), large.noise_std * large.target.scale
    assert np.max(np.abs(a.mean - b.mean)) < noise
    assert np.max(np.abs(a.epistemic_std - b.epistemic_std)) < noise


def test_pruning_again_changes_nothing_and_a_larger_budget_prunes_more():
    (machine,) = fitted("column_order").machines_
    again = prune(machine)
    assert count(again) >= count(machine) - 2  # the budget is new, so a little may go
    assert count(prune(machine, 10.0)) < count(machine)
    assert count(prune(machine, 1e9)) == 6  # one term, one function per column


def test_values_never_seen_are_as_uncertain_as_before(monkeypatch):
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (150, 2))
    shop, dull = rng.integers(0, 3, 150), rng.integers(0, 3, 150)
    y = table[:, 0] * (1.0 + shop) + 0.1 * rng.standard_normal(150)
    rows = np.column_stack([table, shop, dull]).astype(object)
    rows[:, 2:] = np.array(["a", "b", "c"], dtype=object)[rows[:, 2:].astype(int)]
    model = TNKMRegressor(rank=2, prior_groups="column_order", random_state=0)
    new = rows[:5].copy()
    new[:, 2] = "never"
    new[:, 3] = "never"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = model.fit(rows, y)
        got, pruned = small.predict_dist(new), small.n_pruned_
        monkeypatch.setattr(FITTING, "prune", lambda machine: machine)
        expected = model.fit(rows, y).predict_dist(new)
    assert pruned > 0
    np.testing.assert_allclose(got.std, expected.std, rtol=1e-3)
    np.testing.assert_allclose(got.mean, expected.mean, rtol=1e-3, atol=1e-3)


def test_one_precision_for_all_prunes_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert TNKMRegressor(rank=2, random_state=0).fit(X[:, :2], WAVES).n_pruned_ == 0
