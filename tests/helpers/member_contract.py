"""What whatever is chosen by a name promises of a fit, through the public estimator.

The same bits from memory, from disk in pieces and by any number of threads; the same bits from a
model file; a clone is not fitted; weights are repetitions.
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tensorlace import TNKMRegressor, load, save
from tensorlace.errors import CurvatureWarning, IllConditionedWarning
from tensorlace.fitting.registry import BASES, WARPS
from tensorlace.sources import NpySource

__all__ = ["CHECKS", "quietly", "rows", "small"]

N, D = 300, 2
RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (N, D))
TRUTH = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1]
Y = TRUTH + 0.05 * RNG.standard_normal(N)
NEW = RNG.uniform(-1, 1, (40, D))


def rows(params):
    """Features, and targets that the model of these arguments can have."""
    codes = "basis" in params and BASES[params["basis"]](5).interval is None
    return (np.round(2 * X) / 2 if codes else X), Y


def small(**params):
    """A small model in its own words."""
    how = {"rank": 2, "n_basis": 4, "max_sweeps": 25, "random_state": 0, "n_jobs": 1}
    if "warp" in params and not WARPS[params["warp"]].interval:
        how["basis"] = "legendre"  # lives beyond its interval too
    return TNKMRegressor(**{**how, **params})


def quietly(fit, *args, **kwargs):
    """Fit without the warnings of a fit that is short on purpose."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, CurvatureWarning, IllConditionedWarning):
            warnings.simplefilter("ignore", kind)
        return fit(*args, **kwargs)


def answers(model):
    """Mean and standard deviation at new rows, and the evidence."""
    mean, std = model.predict(NEW, return_std=True)
    return [mean, std, np.array(model.log_evidence_)]


def same(a, b):
    return all(map(np.array_equal, answers(a), answers(b)))


def it_fits_and_predicts(params, folder):
    X_, y = rows(params)
    model = quietly(small(**params).fit, X_, y)
    mean, std = model.predict(X_, return_std=True)
    assert mean.shape == std.shape == (N,)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0.0)
    assert np.mean((y - mean) ** 2) < 0.7 * np.var(y)
    assert np.array_equal(model.predict_dist(X_).mean, mean)


def streams_and_threads_give_the_same_bits(params, folder):
    X_, y = rows(params)
    np.save(folder / "X.npy", X_)
    np.save(folder / "y.npy", y)
    source = NpySource(folder / "X.npy", folder / "y.npy")
    memory = quietly(small(**params).fit, X_, y)
    for budget, threads in ((0, 1), (0, 2), (1 << 30, 2)):
        how = {**params, "memory_budget": budget, "n_jobs": threads}
        assert same(quietly(small(**how).fit_rows, source), memory)


def files_keep_every_bit(params, folder):
    X_, y = rows(params)
    model = quietly(small(**params).fit, X_, y)
    save(model, folder / "model.tlace")
    again = load(folder / "model.tlace")
    assert again.get_params() == model.get_params()
    assert same(again, model)
    assert np.array_equal(again.sample_y(NEW, 2, 1), model.sample_y(NEW, 2, 1))


def a_clone_is_the_same_model_not_fitted(params, folder):
    X_, y = rows(params)
    model = quietly(small(**params).fit, X_, y)
    copy = clone(model)
    assert not hasattr(copy, "machines_")
    assert same(quietly(copy.fit, X_, y), model)


def weights_are_repetitions(params, folder):
    """To the digits that a short fit of many steps keeps."""
    X_, y = rows(params)
    times = np.random.default_rng(5).integers(0, 3, N)
    how = {**params, "max_sweeps": 3}
    weighted = quietly(small(**how).fit, X_, y, sample_weight=times.astype(float))
    repeated = quietly(small(**how).fit, np.repeat(X_, times, axis=0), np.repeat(y, times))
    scale = np.std(y)
    for a, b in zip(answers(weighted)[:2], answers(repeated)[:2], strict=True):
        assert np.max(np.abs(a - b)) < 1e-6 * scale


CHECKS = (
    it_fits_and_predicts,
    streams_and_threads_give_the_same_bits,
    files_keep_every_bit,
    a_clone_is_the_same_model_not_fitted,
    weights_are_repetitions,
)
