"""Fits with tails beside direct minimisation; wild rows hardly count; clean rows notice nothing."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize, stats

from tensorlace import InputError, TNKMRegressor
from tensorlace.columns.bases import Legendre
from tensorlace.fitting.config import Config
from tensorlace.fitting.fit_network import infer
from tensorlace.fitting.run import Run, Start
from tensorlace.fitting.sound_rows import SoundRows, sound_rows
from tensorlace.fitting.tails import dominated
from tensorlace.laplace.precision import Evidence, Fixed
from tensorlace.likelihoods.student import information, row_weights
from tensorlace.machines.distrusted import Judge
from tensorlace.networks.cpd import CPD, initialise
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.sources import ArraySource, NpySource

SOLVERS = [GaussNewton(), ALS(), MatrixFree()]
each_solver = pytest.mark.parametrize("solver", SOLVERS, ids=["gauss_newton", "als", "matrix_free"])


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, smooth(X) + 0.1 * rng.standard_normal(n)


def smooth(X):
    return np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2


def line(n=60, seed=0):
    """One column, two functions of it: a model that is linear in its weights."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=(1, n))
    y = 1.0 - 2.0 * u[0] + 0.1 * rng.standard_t(3, n)
    y[3] += 50.0
    return u, y, rng.integers(1, 4, n).astype(float)


def settled(solver, *, noise=None, prior=None, tol=1e-11, max_steps=400, rank=1):
    """Settings of a fit with tails."""
    known = {"noise": Fixed(40.0) if noise is None else noise}
    known["prior"] = Fixed(0.5) if prior is None else prior
    return Config(rank, solver=solver, tails=True, tol=tol, max_steps=max_steps, **known)


def fit(X, y, weight=None, **params):
    return TNKMRegressor(**{"rank": 4, "random_state": 0, **params}).fit(X, y, sample_weight=weight)


@each_solver
def test_linear_model_is_the_minimum_of_the_students_negative_log_posterior(solver):
    u, y, w = line()
    basis = Legendre(3)
    rows = MemoryRows(u, y, w, (basis,), block_rows=16)
    fitted = infer(rows, settled(solver), Start(CPD((np.zeros((1, 3)),))))
    phi, nu = basis.phi(u[0]), fitted.degrees

    def loss(v):
        density = stats.t.logpdf(np.sqrt(40.0) * (y - v @ phi), nu)
        return -w @ density + 0.25 * v @ v

    def slope(v):
        r = y - v @ phi
        return -phi @ (w * row_weights(40.0 * r * r, nu) * 40.0 * r) + 0.5 * v

    v = fitted.cores[0].ravel()
    found = optimize.minimize(loss, np.zeros(3), jac=slope, method="BFGS", options={"gtol": 1e-10})
    v_direct = optimize.root(slope, found.x, tol=1e-14).x
    np.testing.assert_allclose(v, v_direct, atol=1e-8)
    assert 2.2 <= nu < 10.0

    # and the evidence is the Laplace approximation there, with the expected Hessian
    tau = row_weights(40.0 * (y - v @ phi) ** 2, nu)
    H = 40.0 * information(nu) * (phi * w * tau) @ phi.T + 0.5 * np.eye(3)
    expected = (
        w @ (stats.t.logpdf(np.sqrt(40.0) * (y - v @ phi), nu) + 0.5 * np.log(40.0))
        - 0.25 * v @ v
        + 1.5 * np.log(0.5)
        - 0.5 * np.linalg.slogdet(H)[1]
    )
    assert fitted.log_evidence == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(fitted.posterior.solve(np.eye(3)), np.linalg.inv(H), rtol=1e-6)


@each_solver
def test_the_objective_with_students_t_never_rises_once_precisions_are_found(solver):
    X, y = table(80)
    bases, rng = (Legendre(3),) * 3, np.random.default_rng(1)
    network = CPD(initialise([b.constant() for b in bases], 2, rng))
    rows = MemoryRows(0.5 * (X.T + 1.0), y, None, bases, block_rows=16)
    run = Run(rows, settled(solver, rank=2, max_steps=120), Start(network))
    seen = []
    while run.advance():
        if run.learning:
            continue
        v, nu = run.state.network, run.degrees
        r = y - v.response([b.phi(x) for b, x in zip(bases, 0.5 * (X.T + 1.0), strict=True)])
        penalty = 0.25 * float(v.vector @ v.vector)
        seen.append(-stats.t.logpdf(np.sqrt(run.beta) * r, nu).sum() + penalty)
    assert len(seen) >= 10
    assert all(b <= a + 1e-11 * abs(a) for a, b in pairwise(seen))
    assert seen[-1] < seen[0]


def test_solvers_agree():
    X, y = table(200)
    y[7] += 100.0
    found = []
    for solver, sweeps in (("gauss_newton", 300), ("als", 3000), ("matrix_free", 600)):
        params = {"solver": solver, "max_sweeps": sweeps, "rank": 0, "additive": True, "tol": 1e-9}
        model = fit(X, y, noise="student", n_basis=5, **params)
        assert model.machines_[0].fit.gradient <= 1e-9
        found.append((model.predict(X), model.noise_.degrees))
    for mean, degrees in found[1:]:
        np.testing.assert_allclose(mean, found[0][0], atol=1e-4)  # precisions stop at 1e-4
        assert degrees == pytest.approx(found[0][1], rel=1e-3)


@pytest.mark.parametrize("noise", ["student", "auto"])
@pytest.mark.parametrize("curvature", ["ggn", "last", "block", "diag", "full"])
def test_one_wild_row_hardly_moves_a_fit(noise, curvature):
    X, y = table()
    new = np.random.default_rng(9).uniform(-1, 1, (1000, 3))
    params = {"noise": noise, "curvature": curvature}
    if curvature == "full":
        params["threshold"] = 1e-6
    errors = []
    for far in (0.0, 100.0, 1e6):
        moved = y.copy()
        moved[7] += far * y.std()
        model = fit(X, moved, **params)
        errors.append(np.sqrt(np.mean((model.predict(new) - smooth(new)) ** 2)))
        if far:
            assert model.noise_.kind == ("student" if noise == "student" else "gaussian")
            assert model.distrusted_["row"].tolist() == [7]
            assert model.distrusted_["y"][0] == moved[7]
            assert abs(model.distrusted_["prediction"][0] - smooth(X[7:8])[0]) < 1.0
            assert model.distrusted_["weight"][0] < 0.01
            assert "1 row is distrusted: 7" in str(model.summary())
    assert max(errors) < 1.05 * errors[0]


@pytest.mark.parametrize("solver", ["gauss_newton", "als", "matrix_free"])
def test_a_fit_with_one_wild_row_is_the_fit_without_that_row(solver):
    """Not only nearly so: the row has no weight where nothing else is wrong."""
    X, y = table()
    y[7] += 1e6 * y.std()
    kept = np.arange(len(y)) != 7
    params = {"solver": solver, "tol": 1e-8, "max_sweeps": 2000, "rank": 0, "additive": True}
    wild, without = fit(X, y, **params), fit(X[kept], y[kept], **params)
    assert wild.distrusted_["row"].tolist() == [7]
    dists = [model.predict_dist(X[kept]) for model in (wild, without)]
    scale = dists[1].epistemic_std
    assert np.all(np.abs(dists[0].mean - dists[1].mean) < 0.01 * scale)
    np.testing.assert_allclose(dists[0].std, dists[1].std, rtol=1e-3)


def test_rows_that_are_left_out_are_the_same_from_a_stream(tmp_path):
    X, y = table()
    y[[7, 200]] += 1e4
    model = fit(X, y, n_basis=5)
    chunk = ArraySource(X, y).whole(0)
    judge = Judge(fit(X, y, n_basis=5, noise="student").fitted_model().ensemble)
    sound = sound_rows(ArraySource(X, y), judge).whole(0)
    assert np.flatnonzero(sound.weight == 0.0).tolist() == [7, 200]
    np.testing.assert_array_equal(SoundRows(ArraySource(X, y), judge).whole(0).weight, sound.weight)
    total = SoundRows(ArraySource(X, y), judge).reduce(lambda c: c.weight.sum(), np.add)
    assert total == len(chunk.y) - 2
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = NpySource(tmp_path / "X.npy", tmp_path / "y.npy")
    streamed = TNKMRegressor(rank=4, random_state=0, n_basis=5, memory_budget=1).fit_rows(source)
    np.testing.assert_allclose(streamed.predict(X), model.predict(X), rtol=1e-9)
    assert sorted(streamed.distrusted_["row"]) == [7, 200]


@pytest.mark.parametrize("params", [{}, {"solver": "als", "tol": 1e-2}, {"n_members": 2}])
def test_clean_tables_get_the_same_bits_as_without(params):
    X, y = table()
    ours, plain = fit(X, y, **params), fit(X, y, noise="gaussian", **params)
    a, b = ours.predict(X, return_std=True), plain.predict(X, return_std=True)
    assert all(map(np.array_equal, a, b))
    assert len(ours.distrusted_) == 0
    assert ours.fitted_model().record.distrusted is None


def test_tails_of_the_noise_are_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 2))
    y = 0.5 * X[:, 0] + 0.1 * stats.t.rvs(3.0, size=3000, random_state=rng)
    model = fit(X, y, rank=2, basis="legendre", n_basis=3)
    nu, _, scale = stats.t.fit(y - model.predict(X), floc=0.0)
    assert model.noise_.degrees == pytest.approx(nu, rel=0.02)
    core = model.machines_[0].target.scale * model.machines_[0].noise_std
    assert core == pytest.approx(scale, rel=0.01)
    assert nu == pytest.approx(3.0, rel=0.1)
    # the variance of the noise is that of Student's t
    dist = model.predict_dist(X[:5])
    nu = model.noise_.degrees
    np.testing.assert_allclose(dist.aleatoric_std, core * np.sqrt(nu / (nu - 2)), rtol=1e-10)
    lower, upper = model.predict_interval(X, coverage=0.95)
    assert abs(np.mean((y >= lower) & (y <= upper)) - 0.95) < 0.01


def test_skewed_or_varying_noise_is_no_reason_for_tails():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (1000, 1))
    skewed = X[:, 0] + 0.3 * rng.exponential(size=1000) ** 1.5
    assert fit(X, skewed, rank=1).noise_.kind == "gaussian"
    assert fit(X, skewed, rank=1, noise="student").noise_.kind == "student"
    varying = X[:, 0] + np.where(X[:, 0] > 0.6, 3.0, 0.02) * rng.standard_normal(1000)
    assert fit(X, varying, rank=1).noise_.kind == "gaussian"


def test_integer_weights_are_repetitions_and_rows_keep_their_numbers():
    X, y = table(150)
    y[[7, 20]] += 100.0
    weight = np.random.default_rng(3).integers(0, 3, 150)
    weight[[7, 20]] = 1, 2
    repeated = np.repeat(np.arange(150), weight)
    params = {"noise": "student", "tol": 1e-9, "max_sweeps": 600, "rank": 2}
    a, b = fit(X, y, weight, **params), fit(X[repeated], y[repeated], **params)
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-6)
    assert a.noise_.degrees == pytest.approx(b.noise_.degrees, rel=1e-5)
    assert sorted(a.distrusted_["row"]) == [7, 20]
    assert len(b.distrusted_) == 3


@pytest.mark.parametrize("noise", ["student", "auto"])
def test_files_and_threads_give_the_same_bits(noise, tmp_path):
    X, y = table(9000)
    y[7] += 1e4
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    params = {"noise": noise, "max_sweeps": 60, "rank": 4, "random_state": 0, "tol": 1e-2}
    source = NpySource(tmp_path / "X.npy", tmp_path / "y.npy")
    whole = TNKMRegressor(n_jobs=1, **params).fit_rows(ArraySource(X, y))
    others = [
        TNKMRegressor(n_jobs=2, **params).fit_rows(ArraySource(X, y)),
        TNKMRegressor(n_jobs=1, memory_budget=0, **params).fit_rows(source),
    ]
    assert whole.distrusted_["row"].tolist() == [7]
    for model in others:
        assert np.array_equal(model.predict(X[:50]), whole.predict(X[:50]))
        for column in ("row", "y", "prediction", "weight"):
            assert np.array_equal(model.distrusted_[column], whole.distrusted_[column])


@each_solver
def test_a_snapshot_goes_on_to_the_same_bits(solver):
    X, y = table(120)
    y[5] += 1e3
    bases = (Legendre(4),) * 3
    network = CPD(initialise([b.constant() for b in bases], 2, np.random.default_rng(0)))
    settings = settled(solver, noise=Evidence(), prior=Evidence(), rank=2, max_steps=25, tol=1e-9)
    rows = MemoryRows(0.5 * (X.T + 1.0), y, None, bases, block_rows=32)
    run, saved = Run(rows, settings, Start(network)), []
    while run.advance():
        saved.append(run.snapshot())
    for k in (0, 7, 16, len(saved) - 1):
        again = Run(rows, settings, Start(network))
        again.restore(saved[k])
        while again.advance():
            pass
        assert np.array_equal(again.state.network.vector, run.state.network.vector)
        assert (again.beta, again.degrees) == (run.beta, run.degrees)
        assert again.history == run.history


def test_checkpoints_of_a_fit_that_turns_to_tails(tmp_path):
    X, y = table(200)
    y[5] += 1e3
    source = ArraySource(X, y)
    params = {"rank": 2, "random_state": 0, "tol": 1e-4}
    path = tmp_path / "fit"
    first = TNKMRegressor(**params).fit_rows(source, checkpoint=path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "fit.0.npz",
        "fit.sound.0.npz",
        "fit.tails.0.npz",
    ]
    again = TNKMRegressor(**params).fit_rows(source, checkpoint=path)
    assert np.array_equal(first.predict(X), again.predict(X))


def test_rank_terms_are_dropped_with_tails_too():
    X, y = table(400)
    y = X[:, 0] * X[:, 1] + 0.1 * np.random.default_rng(0).standard_normal(400)
    y[9] += 1e3
    model = fit(X, y, prior_groups="rank", rank=4, noise="student", basis="legendre")
    assert model.machines_[0].fit.network.rank < 4
    assert model.distrusted_["row"].tolist() == [9]


def test_what_is_refused():
    X, y = table(30)
    for noise in ("varying", "varying_student"):
        with pytest.raises(InputError, match="the same everywhere, 'gaussian' or 'student'"):
            fit(X, y, noise=noise)
    config = replace(settled(GaussNewton()), likelihood=_Curved())
    with pytest.raises(InputError, match='needs likelihood="gaussian"'):
        config.for_table((3,), 30, 1.0)


class _Curved:
    squared, standardises = False, False


def test_one_row_dominates_only_if_its_share_is_large():
    y = np.random.default_rng(0).standard_normal(1000)
    assert not dominated(y)
    assert not dominated(np.append(y, 9.0))  # a twelfth of the variance
    assert dominated(np.append(y, 40.0))
    assert dominated(np.append(y, 40.0), np.append(np.full(1000, 2.0), 1.0))
    assert not dominated(np.array([0.0, 0.0, 1.0]))  # few rows
    assert not dominated(np.zeros(5))
