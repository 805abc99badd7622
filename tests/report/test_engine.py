"""The page computes what Python computes: every basis, warp, posterior and noise."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from tensorlace import Categorical, Numeric, TNKMRegressor
from tensorlace.columns.bases import Subset
from tensorlace.report.embed import LEVELS, embed
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.models import with_ensemble
from tests.helpers.reported import FRAME, KINDS, NEW, ROWS, N, X, Y, agree, fit

BASES = ("cosine", "sine", "fourier", "chebyshev", "legendre", "polynomial", "unit_polynomial")


@pytest.mark.parametrize("basis", [*BASES, "bspline"])
@pytest.mark.parametrize("n_basis", [5, 8])
def test_bases(javascript, basis, n_basis):
    agree(javascript, fit(basis=basis, n_basis=n_basis), ROWS)


@pytest.mark.parametrize("warp", ["minmax", "quantile", "mixed", "standardise", "identity"])
def test_warps(javascript, warp):
    agree(javascript, fit(basis="legendre", warp=warp), ROWS)


@pytest.mark.parametrize("curvature", ["ggn", "last", "block", "diag", "full"])
@pytest.mark.parametrize("n_rows", [30, N])
def test_posteriors(javascript, curvature, n_rows):
    params = {"rank": 3, "n_basis": 5, "curvature": curvature, "threshold": None}
    if curvature == "full":
        params |= {"threshold": 1e-2}
    agree(javascript, fit(X[:n_rows], Y[:n_rows], **params), ROWS)


@pytest.mark.parametrize(
    "params",
    [
        {"additive": True},
        {"rank": 0, "additive": True},
        {"rank": 0, "additive": True, "columns": {0: Categorical()}, "curvature": "block"},
        {"rotate": True},
        {"additive": True, "rotate": True, "prior_groups": "column_order"},
        {"n_members": 3},
        {"network": "tt"},
        {"network": "tt", "rank": 3, "additive": True, "curvature": "block"},
        {"basis": "indicator", "n_basis": 3},
        {"prior_precision": 0.0, "rank": 1},
        {"columns": {0: Categorical()}},
    ],
    ids=str,
)
def test_structure(javascript, params):
    grid = np.round(X)
    model = fit(grid, Y, **params)
    agree(javascript, model, np.concatenate([grid[:10], [[9.0, 0.0, 1.0]]]))


@pytest.mark.parametrize("additive", [False, True])
def test_kinds_gaps_and_novel_values(javascript, additive):
    model = fit(FRAME, Y, columns=KINDS, additive=additive, n_members=2)
    agree(javascript, model, NEW)


def test_constant_and_empty_columns(javascript):
    table = np.column_stack([X[:, 0], np.full(N, 3.0), np.full(N, np.nan)])
    model = fit(table, Y, columns={1: Numeric()})
    agree(javascript, model, np.array([[0.0, 3.0, np.nan], [0.0, 4.0, 1.0]]))


@pytest.mark.parametrize("noise", ["auto", "student", "varying_student"])
def test_searched_mixture(javascript, noise):
    rng = np.random.default_rng(1)
    table = rng.uniform(-1, 1, (400, 2))
    y = table[:, 0] ** 2 + np.exp(table[:, 1]) * 0.2 * rng.standard_t(4, 400)
    model = TNKMRegressor(time_budget=0.3, noise=noise, random_state=0, n_jobs=1).fit(table, y)
    assert noise == "auto" or model.noise_.kind == noise
    agree(javascript, model, np.concatenate([table[:5], [[3.0, -4.0]]]))


def test_pruned_model(javascript):
    """Weights that were switched off leave a subset of a basis."""
    model = fit(np.column_stack([X[:, 0], X[:, 1]]), X[:, 0] ** 2, rank=2, n_basis=9)
    machine = model.machines_[0]
    which = tuple(range(0, 9, 2))
    columns = tuple(replace(c, basis=Subset(c.basis, which)) for c in machine.columns.columns)
    cores = tuple(np.ascontiguousarray(V[:, which]) for V in machine.fit.cores)
    gamma = tuple(np.ascontiguousarray(g[:, which]) for g in machine.fit.gamma)
    kept = np.concatenate(
        [np.arange(2 * 9).reshape(2, 9)[:, which].ravel() + 18 * d for d in (0, 1)]
    )
    posterior = replace(machine.fit.posterior, W=machine.fit.posterior.W[kept])
    network = machine.fit.network.with_cores(cores)
    fitted = replace(machine.fit, network=network, gamma=gamma, posterior=posterior)
    machine = replace(machine, columns=replace(machine.columns, columns=columns), fit=fitted)
    model = with_ensemble(model, machines=(machine,))
    agree(javascript, model, np.column_stack([ROWS[:, 0], ROWS[:, 1]]))


def test_calibrated(javascript):
    model = fit(X[:60], Y[:60]).calibrate(X[60:], Y[60:])
    model.calibration_.z[[0, -1]] = -6.0, 7.0  # beyond five standard deviations: a straight line
    with pytest.raises(ValueError, match="cannot calibrate"):
        model.predict_quantiles(ROWS, LEVELS)
    found = javascript.predict(json.loads(json.dumps(embed(model))), ROWS)
    middle = model.predict_quantiles(ROWS, LEVELS[1:-1])
    std = model.predict_dist(ROWS).std
    for row, want, s in zip(found, middle, std, strict=True):
        assert row["quantiles"][0] is row["quantiles"][-1] is None  # NaN in JSON
        np.testing.assert_allclose(row["quantiles"][1:-1], want, rtol=0, atol=1e-9 * s)
    model.calibrate(np.tile(X, (2, 1)), np.tile(Y, 2))
    model.calibration_.z[:5], model.calibration_.z[-5:] = -6.0, 7.0
    agree(javascript, model, ROWS)


def test_normal_distribution_function(javascript):
    x = np.concatenate([np.linspace(-37, 8, 400), [-3.0, 3.0, 0.0]])
    got = javascript.run("return input.map(tensorlace.ndtr)", x.tolist())
    np.testing.assert_allclose(got, ndtr(x), rtol=5e-13)
