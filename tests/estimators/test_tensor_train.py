"""The estimator with a tensor train: predictions against dense tensors, and the same bits."""

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

from tensorlace import Categorical, InputError, Periodic, TNKMRegressor, load, save
from tensorlace.errors import CurvatureWarning
from tensorlace.explain.companions import Companions
from tensorlace.explain.relevance import shapley_effects
from tensorlace.fitting.registry import CURVATURES, GROUPS, SOLVERS
from tensorlace.networks.tensor_train import TensorTrain
from tensorlace.predictive.distributions import Mixture
from tensorlace.sources.reference_rows import ReferenceRows
from tests.helpers import oracles
from tests.helpers.oracles import STEP, error

RNG = np.random.default_rng(5)
N = 300
X = RNG.uniform(-1, 1, (N, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] - X[:, 2] * X[:, 1] + 0.1 * RNG.standard_normal(N)
NEW = RNG.uniform(-1, 1, (30, 3))


def fitted(X, y, **options):
    how = {"network": "tt", "rank": 3, "n_basis": 4, "max_sweeps": 60, "random_state": 0}
    model = TNKMRegressor(**{**how, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", CurvatureWarning)
        return model.fit(X, y)


def bits(model):
    (fit,) = (machine.fit for machine in model.machines_)
    return [*fit.cores, fit.beta, fit.log_evidence, fit.posterior.variances(), *fit.history]


def same(a, b):
    return all(map(np.array_equal, bits(a), bits(b)))


def dense_moments(machine, table):
    """Mean and standard deviation by the dense tensor and its complex steps, in units of y."""
    network = machine.fit.network
    u = machine.columns.variables(table)
    phi = [c.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
    K, shapes = oracles.kronecker_features(phi), [V.shape for V in network.cores]

    def f(v):
        return K @ oracles.train_tensor(oracles.unvec(v, shapes), network.ranks).ravel()

    steps = network.vector + 1j * STEP * np.eye(network.n_weights)
    J = np.stack([f(v).imag / STEP for v in steps])
    which = np.concatenate([range(s.start, s.stop) for s in slices(network, machine.fit)])
    variance = machine.fit.posterior.quad(J[which]) + 1 / machine.fit.beta
    return machine.target.inverse(f(network.vector)), machine.target.scale * np.sqrt(variance)


def slices(network, fit):
    ends = np.cumsum([0, *(V.size for V in network.cores)])
    return [slice(ends[d], ends[d + 1]) for d in fit.bayesian_cores]


@pytest.mark.parametrize("curvature", CURVATURES)
def test_predictions_are_those_of_the_dense_tensor(curvature):
    model = fitted(X, Y, curvature=curvature)
    (machine,) = model.machines_
    assert isinstance(machine.fit.network, TensorTrain)
    for found, expected in zip(
        model.predict(NEW, return_std=True), dense_moments(machine, NEW), strict=True
    ):
        assert error(found, expected) < 1e-12
    assert model.score(X, Y) > 0.95


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("curvature", ["ggn", "last", "block"])
def test_parquet_gives_the_bits_of_memory(solver, curvature, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(5000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path, row_group_size=1300)
    how = {"solver": solver, "curvature": curvature, "max_sweeps": 6}
    memory = fitted(X, y, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for threads, budget in ((1, 0), (2, 0), (2, 1 << 30)):
            options = {**memory.get_params(), "n_jobs": threads, "memory_budget": budget}
            assert same(TNKMRegressor(**options).fit_rows(path, "y"), memory)


@pytest.mark.filterwarnings("ignore")  # a cluster warns in its own ways while it comes and goes
def test_a_cluster_gives_the_bits_of_memory(tmp_path):
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (20_000, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(20_000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path, row_group_size=5_000)
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
    )
    with cluster, distributed.Client(cluster) as client:
        for solver in SOLVERS:
            memory = fitted(X, y, solver=solver, max_sweeps=3)
            there = TNKMRegressor(**memory.get_params()).fit_rows(path, "y", client=client)
            assert same(there, memory)


@pytest.mark.parametrize(
    "options",
    [{}, {"additive": True}, {"n_members": 3}, {"rotate": True}, {"curvature": "block"}],
    ids=["one", "with functions", "members", "rotated", "block"],
)
def test_files_keep_every_bit(options, tmp_path):
    model = fitted(X, Y, **options)
    save(model, tmp_path / "model.tlace")
    again = load(tmp_path / "model.tlace")
    for a, b in zip(model.machines_, again.machines_, strict=True):
        assert a.fit.network.is_like(b.fit.network)
        assert np.array_equal(a.fit.network.vector, b.fit.network.vector)
    for a, b in zip(
        model.predict(NEW, return_std=True), again.predict(NEW, return_std=True), strict=True
    ):
        assert np.array_equal(a, b)
    assert np.array_equal(model.sample_y(NEW, 3, 1), again.sample_y(NEW, 3, 1))
    assert np.array_equal(model.partial_effects(0).mean, again.partial_effects(0).mean)


def frame(n):
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "age": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.uniform(20, 60, n)),
            "shop": rng.choice(["north", "south", "west"], n),
            "hour": rng.integers(0, 24, n).astype(float),
        }
    )
    y = np.nan_to_num(table["age"].to_numpy(), nan=40.0) / 20 + np.sin(table["hour"] * np.pi / 12)
    return table, (y + (table["shop"] == "west") + 0.1 * rng.standard_normal(n)).to_numpy()


@pytest.mark.parametrize("curvature", ["ggn", "block", "last"])
def test_mixed_kinds_missing_and_values_never_seen(curvature):
    table, y = frame(N)
    plain = {"curvature": curvature, "extrapolation": "plain", "target_scale": "identity"}
    model = fitted(table, y, columns={"hour": Periodic(24)}, **plain)
    assert isinstance(model.kinds_["shop"], Categorical)
    (machine,) = model.machines_
    encoded = model.fitted_model().encode(table[:20])
    mean, std = dense_moments(machine, encoded)
    found = model.predict(table[:20], return_std=True)
    assert error(found[0], mean) < 1e-12
    assert error(found[1], std) < 1e-12
    assert model.score(table, y) > 0.9

    unseen = table[:20].assign(shop="moon")
    encoded = model.fitted_model().encode(unseen)
    mean, std = dense_moments(machine, encoded)
    # one more function of the column, of which only its prior is known
    u = machine.columns.variables(encoded)
    phi = [c.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
    network, d = machine.fit.network, 1
    prior = np.mean(1 / machine.fit.gamma[d][:, 1:], axis=1)
    extra = np.zeros(20)
    for k, variance in enumerate(prior):
        unit = np.zeros_like(network.cores[d])
        unit[k, 0] = 1.0
        own = [*phi[:d], np.eye(len(phi[d]))[:, :1].repeat(20, 1), *phi[d + 1 :]]
        extra += variance * network.with_core(d, unit).response(own) ** 2
    found = model.predict(unseen, return_std=True)
    assert error(found[0], mean) < 1e-12
    expected = np.sqrt(std**2 + machine.target.scale**2 * extra)
    assert error(found[1], expected) < 1e-12
    assert np.all(expected > std)
    draws = model.sample_y(unseen[:5], 20_000, random_state=0)
    np.testing.assert_allclose(draws.std(axis=1), expected[:5], rtol=0.03)


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("groups", GROUPS)
def test_prior_groups(groups, additive):
    if groups == "rank":
        with pytest.raises(InputError, match=r'rank-one terms.*give network="cpd"'):
            fitted(X, Y, prior_groups=groups, additive=additive)
        return
    model = fitted(X, Y, prior_groups=groups, additive=additive)
    (machine,) = model.machines_
    index = GROUPS[groups](machine.fit.network).index
    gamma = oracles.vec(machine.fit.gamma)
    assert all(len(set(gamma[index == g])) == 1 for g in range(index.max() + 1))
    assert model.score(X, Y) > 0.95


def test_without_products_the_network_does_not_matter():
    how = {"rank": 0, "additive": True}
    for columns in (1, 3):
        train, cpd = (fitted(X[:, :columns], Y, network=name, **how) for name in ("tt", "cpd"))
        assert same(train, cpd)


def test_a_search_finds_a_train():
    model = TNKMRegressor(network="tt", time_budget=1.0, random_state=0).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_sampled_predictive():
    """One Bayesian core enters linearly: its draws are those of the closed form."""
    how = {"curvature": "last", "core": 1}
    dist = fitted(X, Y, predictive="sampled", n_draws=2000, **how).predict_dist(NEW)
    exact = fitted(X, Y, **how).predict_dist(NEW)
    assert isinstance(dist, Mixture)
    few = 4.5 / np.sqrt(2000)
    assert np.all(np.abs(dist.mean - exact.mean) < few * exact.epistemic_std)
    assert np.all(np.abs(dist.epistemic_std / exact.epistemic_std - 1) < few / np.sqrt(2))


def test_members_are_trains_from_different_starts():
    model = fitted(X, Y, n_members=3)
    a, b, c = (machine.fit.network for machine in model.machines_)
    assert a.is_like(b)
    assert a.is_like(c)
    assert not np.array_equal(a.vector, b.vector)
    means = np.stack([machine.mean(NEW) for machine in model.machines_])
    assert error(model.predict(NEW), np.average(means, axis=0, weights=model.weights_)) < 1e-14


@pytest.mark.parametrize("additive", [False, True])
def test_effects_are_averages_over_rows(additive):
    model = fitted(X, Y, additive=additive, extrapolation="plain")
    (machine,) = model.machines_
    grid = np.array([-0.7, 0.1, 0.9])
    for d in range(3):
        found = model.partial_effects(d, grid, method="alone")
        for k, value in enumerate(grid):
            moved = X.copy()
            moved[:, d] = value
            u = machine.columns.variables(moved)
            phi = [c.phi(x) for c, x in zip(machine.columns.columns, u, strict=True)]
            average = machine.fit.network.jacobian(phi).mean(axis=1)
            variance = average @ machine.fit.posterior.solve(average)
            assert found.mean[k] == pytest.approx(machine.mean(moved).mean(), rel=1e-11)
            assert found.std[k] == pytest.approx(machine.target.scale * variance**0.5, rel=1e-9)


def test_relevance_is_shared_out_over_all_pairs_and_orders():
    """Each row with some columns of each other row, against the brute force over all of them."""
    model, rows = fitted(X, Y), X[:12]
    companions = Companions.of(ReferenceRows(rows, np.full(12, 1 / 12)), [True] * 3, faint=2.0)
    found = shapley_effects(
        model.predict,
        ReferenceRows(rows, np.full(12, 1 / 12)),
        companions,
        np.random.default_rng(0),
        evaluations=1 << 15,
    )
    f, expected = model.predict(rows), np.zeros(3)
    for order in permutations(range(3)):
        for m in range(12):
            moved, last = rows.copy(), f
            for d in order:
                moved[:, d] = rows[m, d]
                now = np.clip(model.predict(moved), f.min(), f.max())
                expected[d] += np.sum((f[m] - f) * (now - last)) / 12**2 / 12
                last = now
    assert expected.sum() == pytest.approx(f.var(), rel=1e-12)
    assert expected.min() > 0.0
    np.testing.assert_allclose(found, expected, atol=0.02 * f.var())
