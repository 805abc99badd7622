"""Rare levels of categories in products: a smaller prior of their own."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tensorlace import TNKMRegressor
from tensorlace.columns.bases import Basis, Levels, Polynomial
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Start
from tensorlace.kinds import Categorical
from tensorlace.laplace.curvature import GGN
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Evidence, Fixed, GammaVI
from tensorlace.laplace.prior_groups import (
    RARE_ROWS,
    for_levels,
    one_group,
    per_column,
    per_column_and_order,
    per_order,
    per_rank_term,
)
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.sum import Sum
from tensorlace.networks.tensor_train import TensorTrain
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.gauss_newton import GaussNewton
from tests.helpers import oracles
from tests.helpers.oracles import error

SIZES, RANK = (3, 4, 1, 3), 2
ROWS = ((), (40.0, 2.5, 1.0), (), (7.0, 90.0))
CONSTANTS = [np.eye(n)[0] for n in SIZES]
PRODUCTS = CPD.initialise(CONSTANTS, RANK, np.random.default_rng(0))
NETWORKS = {
    "products": PRODUCTS,
    "sum": Sum((PRODUCTS, Additive.zero(SIZES))),
    "train": TensorTrain.initialise(CONSTANTS, RANK, np.random.default_rng(0)),
}
GROUPINGS = (one_group, per_column, per_order, per_column_and_order, per_rank_term)


def is_level(d, r, i):
    return r >= 0 and i > 0 and len(ROWS[d]) > 0


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda f: f.__name__)
def test_levels_share_the_group_of_the_first_and_have_their_own_precision(network, grouping):
    if grouping is per_rank_term and network is NETWORKS["train"]:
        pytest.skip("a train has no rank-one terms")
    before, labels = grouping(network), network.labels().T.tolist()
    after = for_levels(before, network, ROWS)
    of_label = dict(zip(map(tuple, labels), before.index.tolist(), strict=True))
    expected = [of_label[d, r, 1 if is_level(d, r, i) else i] for d, r, i in labels]
    same = np.equal.outer(expected, expected)
    np.testing.assert_array_equal(np.equal.outer(after.index, after.index), same)
    assert after.count.tolist() == [np.sum(after.index == g) for g in range(len(after.count))]
    relative = [1 + RARE_ROWS / ROWS[d][i - 1] if is_level(d, r, i) else 1 for d, r, i in labels]
    np.testing.assert_allclose(after.relative, relative, rtol=1e-15)
    if before.column is None:
        assert after.column is None
    else:
        np.testing.assert_array_equal(after.column[after.index], before.column[before.index])


def test_precisions_go_from_groups_to_weights_and_back():
    groups = for_levels(per_column_and_order(PRODUCTS), PRODUCTS, ROWS)
    gamma = np.random.default_rng(1).lognormal(0.0, 2.0, len(groups.count))
    each = groups.each(gamma)
    pairs = zip(groups.index, groups.relative, strict=True)
    assert each.tolist() == [gamma[g] * s for g, s in pairs]
    np.testing.assert_allclose(groups.common(each), gamma, rtol=1e-15)


def config(groups=one_group, **changes):
    return Config(
        rank=2,
        **{
            "solver": GaussNewton(),
            "curvature": GGN(),
            "truncation": Truncation(),
            "noise": Evidence(),
            "prior": Evidence(),
            "groups": groups,
            "max_steps": 2000,
            "tol": 1e-13,
            "precision_tol": 1e-12,
            **changes,
        },
    )


def test_only_what_is_learned_for_levels_changes():
    plain = per_column_and_order(PRODUCTS)
    known = config(per_column_and_order, level_rows=ROWS, prior=Fixed(2.0))
    numbers = config(per_column_and_order, level_rows=((),) * len(SIZES))
    for settings in (known, numbers, config(per_column_and_order)):
        groups = settings.grouped(PRODUCTS)
        assert groups.relative is None
        np.testing.assert_array_equal(groups.index, plain.index)
        gamma = np.arange(1.0, 1.0 + len(groups.count))
        np.testing.assert_array_equal(groups.each(gamma), gamma[groups.index])
    learned = config(per_column_and_order, level_rows=ROWS).grouped(PRODUCTS)
    assert learned.relative is not None
    assert config(level_rows=ROWS).what_is_fitted() != config().what_is_fitted()


@dataclass(frozen=True)
class Scaled(Basis):
    """Levels, each multiplied by a number."""

    scales: tuple = ()
    name, interval, bounded = "scaled", None, True

    def phi(self, u):
        return Levels(self.n).phi(u) * np.array(self.scales)[:, None]

    def psi(self, u):
        return Levels(self.n).phi(u)

    def expansion(self):
        return Levels(self.n).expansion() * np.multiply.outer(self.scales, self.scales)[:, :, None]

    def constant(self):
        return Levels(self.n).constant()


COUNTS = (40, 25, 12, 4, 2)


def interacting(seed=0):
    """A slope that depends on the level; some levels are rare."""
    rng = np.random.default_rng(seed)
    u = np.repeat(np.arange(float(len(COUNTS))), COUNTS)
    x = rng.uniform(-1, 1, len(u))
    slope = np.array([1.0, -0.6, 0.3, 1.2, -0.9])
    y = (slope[u.astype(int)]) * x + 0.5 + 0.4 * rng.standard_normal(len(u))
    return np.stack([u, x]), (y - y.mean()) / y.std()


@pytest.mark.parametrize("policy", [Evidence(), GammaVI()], ids=repr)
@pytest.mark.parametrize("grouping", [one_group, per_column], ids=lambda f: f.__name__)
def test_a_rare_level_is_a_feature_made_smaller(grouping, policy):
    """A prior precision of s⁻² on a function is one of 1 on s times it."""
    u, y = interacting()
    number = Polynomial(2)
    scales = (1.0, *(1 / np.sqrt(1 + RARE_ROWS / np.array(COUNTS))))
    levels, scaled = Levels(len(COUNTS) + 1), Scaled(len(COUNTS) + 1, scales)
    first = CPD.initialise([levels.constant(), number.constant()], 2, np.random.default_rng(3))
    settings = config(grouping, noise=policy, prior=policy)
    with MemoryRows(u, y, None, (levels, number), block_rows=16) as rows:
        ours = infer(rows, replace(settings, level_rows=(COUNTS, ())), Start(first))
    V, W = first.cores
    with MemoryRows(u, y, None, (scaled, number), block_rows=16) as rows:
        theirs = infer(rows, settings, Start(CPD((V / np.array(scales), W))))
    for network in (ours.network, theirs.network):
        assert np.linalg.norm(network.vector) > 0.3  # there is something to compare
    assert ours.log_evidence == pytest.approx(theirs.log_evidence, rel=1e-8)
    assert ours.beta == pytest.approx(theirs.beta, rel=1e-7)
    own, other = ours.network.cores, theirs.network.cores
    f = oracles.response(own, [levels.phi(u[0]), number.phi(u[1])])
    g = oracles.response(other, [scaled.phi(u[0]), number.phi(u[1])])
    assert error(f, g) < 1e-6
    assert error(ours.gamma[0] * np.array(scales) ** 2, theirs.gamma[0]) < 1e-6


def test_the_weight_of_a_rare_level_is_shrunk_as_ridge_regression_says():
    """``w_l = β Σ z (y - z c) / (β Σ z² + γ (1 + k / n_l))`` over the rows of the level."""
    u, y = interacting(1)
    bases = (Levels(len(COUNTS) + 1), Polynomial(2))
    first = CPD.initialise([b.constant() for b in bases], 1, np.random.default_rng(0))
    settings = config(per_column_and_order, level_rows=(COUNTS, ()))
    with MemoryRows(u, y, None, bases, block_rows=16) as rows:
        fit = infer(rows, replace(settings, rank=1), Start(first))
    (constant, *weights), slope = fit.network.cores[0][0], fit.network.cores[1][0]
    gamma = fit.gamma[0][0, 1:] / (1 + RARE_ROWS / np.array(COUNTS))
    np.testing.assert_allclose(gamma, gamma[0], rtol=1e-14)  # all levels share one
    z = slope @ bases[1].phi(u[1])
    for level, count in enumerate(COUNTS):
        own = u[0] == level
        rows_say = fit.beta * np.sum(z[own] * (y[own] - z[own] * constant))
        precision = fit.beta * np.sum(z[own] ** 2) + gamma[0] * (1 + RARE_ROWS / count)
        assert weights[level] == pytest.approx(rows_say / precision, rel=1e-9)


@pytest.mark.parametrize("rotate", [False, True], ids=["plain", "rotated"])
def test_an_estimator_counts_its_rows(rotate):
    """By level, those of repetitions and missing values too, in whatever order columns come."""
    rng = np.random.default_rng(2)
    u, y = interacting(2)
    code = u[0].copy()
    code[::7] = np.nan
    X = np.column_stack([code, u[1], rng.standard_normal(len(y))])
    weight = rng.integers(0, 3, len(y)).astype(float)
    levels = [*np.unique(code[(weight > 0) & ~np.isnan(code)]), np.nan]
    counts = [
        weight[np.isnan(code) if np.isnan(level) else code == level].sum() for level in levels
    ]
    how = {"rank": 2, "n_basis": 3, "prior_groups": "column", "random_state": 0}
    model = TNKMRegressor(**how, additive=True, rotate=rotate, columns={0: Categorical()})
    model.fit(X, y, sample_weight=weight)
    (machine,) = model.machines_
    d = 2 if rotate else 0
    assert machine.columns.columns[d].basis.described == Levels(len(levels) + 1)
    *products, functions = machine.fit.gamma
    relative = products[d][:, 1:] / products[d][:, :1]
    np.testing.assert_allclose(relative, [1 + RARE_ROWS / np.array(counts)] * 2, rtol=1e-13)
    other = [g for e, g in enumerate(products) if e != d]
    assert all(np.all(g == g[0, 0]) for g in other)  # numbers keep one precision
    assert len(np.unique(functions)) <= 3  # and so does each column in the additive part


def test_repetitions_are_rows():
    u, y = interacting(3)
    weight = np.random.default_rng(4).integers(1, 3, len(y))
    how = {"rank": 1, "n_basis": 2, "prior_groups": "column_order", "random_state": 0}
    model = TNKMRegressor(**how, columns={0: Categorical()})
    weighted = model.fit(u.T, y, sample_weight=weight).predict(u.T)
    repeated = model.fit(np.repeat(u.T, weight, axis=0), np.repeat(y, weight)).predict(u.T)
    assert error(weighted, repeated) < 1e-6
