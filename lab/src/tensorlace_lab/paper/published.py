"""The authors' procedure as their code has it, mistakes included.

It is here to show that the published figures come out, and where they come from; nothing else in
the package computes like this. What differs from the text of the paper, or from what is right:

1. every fit of the cross-validation keeps the noise precision at 1 and makes ten sweeps only;
2. the predictive standard deviation is the *sum* of the two deviations, not the root of the sum of
   their squares;
3. the parameters of the Gamma posterior of β accumulate over the rounds;
4. their prior is Gamma(1, 1), which puts a floor under the noise;
5. the posterior covariance is that of the noise precision of the round before;
6. the deviation of the function is that of 30 draws, the expected residual that of 10;
7. environments come from dividing the product of all factors, plus 1e-14;
8. a score that is not a number wins the cross-validation;
9. directions below the threshold are declared certain.

The seeds are the authors' too: with 30 draws they are worth a tenth of the NLL of a small set.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.model_selection import RepeatedKFold

from tensorlace._types import Array
from tensorlace.columns.bases import UnitPolynomial
from tensorlace.networks.cpd import CPD
from tensorlace.networks.gram import expand, moments, padded
from tensorlace.predictive.distributions import Normal
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.linearisation import residual_curvature

__all__ = ["SIZES", "THRESHOLDS", "Fit", "Settings", "choose", "cubic", "fit", "grid", "reproduce"]

SIZES = (2, 4, 8, 16, 24, 32, 48, 64)
"""Ranks, and numbers of basis functions, of the authors' grid."""

THRESHOLDS = (1e-5, 1e-3, 1e-1)

SEED, DRAW_SEED = 13, 14
DRAWS, NOISE_DRAWS = 30, 10
TINY = 1e-14


@final
@dataclass(frozen=True)
class Settings:
    """What the authors fix: of the nine sets by default, of the ablation otherwise."""

    curvature: str = "last"
    sweeps: int = 10
    rounds: int = 5
    prior_precision: float = 1e-5
    draw_seed: int = DRAW_SEED

    def with_curvature(self, curvature: str) -> "Settings":
        """The same of another Hessian."""
        return replace(self, curvature=curvature)


ABLATION = Settings(sweeps=100, rounds=0, prior_precision=1e-6, draw_seed=1)
"""One round of 100 sweeps with the noise precision at 1."""


def grid(n_rows: int, n_columns: int) -> list[tuple[int, int]]:
    """All (R, I) of the authors' grid with no more weights than training rows, nor than 1000.

    >>> len(grid(277, 6)), len(grid(8611, 4))  # yacht, power
    (10, 31)
    """
    most = min(n_rows, 1000)
    return [(R, I) for R in SIZES for I in SIZES if R * I * n_columns <= most]


@final
@dataclass(frozen=True)
class Fit:
    """A fitted network: scaling of the inputs, cores (R, I), precision, Hessian taken apart."""

    mean: Array
    scale: Array
    cores: tuple[Array, ...]
    beta: float
    eigen: tuple[Array, Array]
    settings: Settings

    def predict(self, X: Array, threshold: float, *, linearized: bool = True) -> Normal:
        """Predictive distribution for rows (n, D): mistakes 2, 6 and 9."""
        phi = _features((X - self.mean) / self.scale, self.cores[0].shape[1])
        f, J = _jacobian(self.cores, phi, self.settings.curvature)
        root = _root(self.eigen, threshold)
        steps = root @ _draws(root.shape[1], DRAWS, self.settings.draw_seed)
        if linearized:
            values = J.T @ steps
        else:
            v = np.concatenate([V.ravel() for V in self.cores])
            values = np.stack([_moved(v, step, self.cores, phi) for step in steps.T], axis=1)
        return Normal(f, 0.0, values.std(axis=1) + 1.0 / np.sqrt(self.beta))


def fit(
    X: Array,
    y: Array,
    rank: int,
    n_basis: int,
    threshold: float | None,
    settings: Settings = Settings(),  # noqa: B008  (frozen)
) -> Fit:
    """Fit a network of R = ``rank`` and I = ``n_basis`` to rows (N, D) and a target (N,).

    Without a ``threshold`` the noise precision stays at 1 after one round, as in the fits of the
    cross-validation, so that all thresholds share a fit.
    """
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    x = (X - mean) / scale
    start = np.random.RandomState(SEED).randn(x.shape[1], n_basis, rank)
    cores = [np.ascontiguousarray(V.T) for V in start]
    phi = _features(x, n_basis)
    psi = [padded(UnitPolynomial(n_basis).psi(column)) for column in x.T]
    a, b, beta = 1.0, 1.0, 1.0
    for number in range(1 if threshold is None else settings.rounds):
        _als(cores, phi, psi, y, settings.prior_precision / beta, settings.sweeps)
        eigen = _eigen(cores, phi, x, y, beta, settings)
        if threshold is None:
            break
        root = _root(eigen, threshold)
        f, J = _jacobian(cores, phi, settings.curvature)
        draws = J.T @ (root @ _draws(root.shape[1], NOISE_DRAWS, SEED + 1 + number))
        a += 0.5 * len(y)
        b += 0.5 * float(np.mean(np.sum((y[:, None] - f[:, None] - draws) ** 2, axis=0)))
        beta = a / max(b, 1e-8)
    return Fit(mean, scale, tuple(cores), beta, eigen, settings)


def choose(
    X: Array, y: Array, sizes: Sequence[tuple[int, int]], settings: Settings
) -> tuple[int, int, float]:
    """(R, I, t) of the highest log-likelihood in three-fold cross-validation, repeated twice."""
    folds = list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=1).split(X))
    options, scores = [], []
    for R, I in sizes:
        found = np.zeros((len(folds), len(THRESHOLDS)))
        for k, (train, test) in enumerate(folds):
            fold = fit(X[train], y[train], R, I, None, settings)
            for j, t in enumerate(THRESHOLDS):
                found[k, j] = fold.predict(X[test], t).logpdf(y[test]).mean()
        options += [(R, I, t) for t in THRESHOLDS]
        scores += found.mean(axis=0).tolist()
    return options[int(np.argmax(scores))]


def reproduce(
    X: Array, y: Array, X_test: Array, curvature: str = "last"
) -> tuple[Normal, dict[str, Any]]:
    """Choose, fit and predict: the distribution of the test rows, and what was chosen."""
    settings = Settings(curvature)
    # the authors' target has a deviation of 1 with N - 1 degrees of freedom; choices are that close
    unit = float(np.std(y, ddof=1))
    R, I, t = choose(X, y / unit, grid(*X.shape), settings)
    final = fit(X, y / unit, R, I, t, settings)
    about = {"rank": R, "n_basis": I, "threshold": t, "noise_precision": final.beta / unit**2}
    return final.predict(X_test, t).affine(unit), about


def cubic(x: Array, y: Array, new: Array, rank: int, n_basis: int, beta: float) -> Normal:
    """The toy's one column of plain powers: a linear model with γ = 1, deviations added."""
    phi, phi_new = (np.tile(np.vander(u, n_basis, increasing=True), rank) for u in (x, new))
    H = beta * phi.T @ phi + np.eye(rank * n_basis)
    values, vectors = np.linalg.eigh(H)
    root = vectors / np.sqrt(values)
    f = phi_new @ (root @ (root.T @ (beta * phi.T @ y)))
    draws = phi_new @ (root @ _draws(len(values), DRAWS, DRAW_SEED))
    return Normal(f, 0.0, draws.std(axis=1) + 1.0 / np.sqrt(beta))


def _features(x: Array, n_basis: int) -> list[Array]:
    return [UnitPolynomial(n_basis).phi(np.ascontiguousarray(column)) for column in x.T]


def _als(
    cores: list[Array], phi: list[Array], psi: list[Array], y: Array, ridge: float, sweeps: int
) -> None:
    """Sweeps in place, with the product of all factors carried along (mistake 7)."""
    R, I = cores[0].shape
    closure = UnitPolynomial(I).closure()
    product = np.prod([V @ p for V, p in zip(cores, phi, strict=True)], axis=0)
    for _ in range(sweeps):
        for d, p in enumerate(phi):
            Z = product / (cores[d] @ p + TINY)
            G = expand(moments(psi[d], Z), closure, R) if I >= R else _dense_gram(Z, p)
            G[np.diag_indices_from(G)] += ridge
            cores[d] = _solve(G, (Z @ (p * y).T).ravel()).reshape(R, I)
            product = Z * (cores[d] @ p)


def _solve(G: Array, b: Array) -> Array:
    """By elimination; of a system that rounding has made singular, the shortest solution.

    The authors' library does not stop at a pivot of zero, which is an accident of rounding: theirs
    is not ours.
    """
    try:
        x = np.linalg.solve(G, b)
    except np.linalg.LinAlgError:
        x = np.linalg.lstsq(G, b)[0]
    return np.asarray(x, dtype=np.float64)


def _dense_gram(Z: Array, phi: Array) -> Array:
    G = np.zeros((len(Z) * len(phi),) * 2)
    for a in range(0, Z.shape[1], 1024):
        A = (Z[:, None, a : a + 1024] * phi[None, :, a : a + 1024]).reshape(len(G), -1)
        G += A @ A.T
    return G


def _jacobian(cores: Sequence[Array], phi: Sequence[Array], curvature: str) -> tuple[Array, Array]:
    """Response (n,), and transposed Jacobian of the Bayesian cores (P, n)."""
    F = [V @ p for V, p in zip(cores, phi, strict=True)]
    product = np.prod(F, axis=0)
    which = [len(cores) - 1] if curvature == "last" else range(len(cores))
    parts = [(product / (F[d] + TINY))[:, None, :] * phi[d] for d in which]
    J = np.concatenate([part.reshape(-1, product.shape[1]) for part in parts])
    return product.sum(axis=0), J


def _eigen(
    cores: Sequence[Array], phi: Sequence[Array], x: Array, y: Array, beta: float, how: Settings
) -> tuple[Array, Array]:
    """Eigenvalues and vectors of the Hessian of the Bayesian cores."""
    _, J = _jacobian(cores, phi, how.curvature)
    H = _SHAPES[how.curvature](J @ J.T, cores)
    if how.curvature == "full":
        bases = [UnitPolynomial(len(p)) for p in phi]
        with MemoryRows(np.ascontiguousarray(x.T), y, None, bases, block_rows=512) as rows:
            H = H + residual_curvature(rows, CPD(tuple(cores)))
    values, vectors = np.linalg.eigh(beta * H + how.prior_precision * np.eye(len(H)))
    return values, vectors


def _blocks(G: Array, cores: Sequence[Array]) -> Array:
    of_core = np.repeat(np.arange(len(cores)), cores[0].size)
    return np.where(of_core[:, None] == of_core, G, 0.0)


_SHAPES: dict[str, Callable[[Array, Sequence[Array]], Array]] = {
    "last": lambda G, cores: G,
    "ggn": lambda G, cores: G,
    "full": lambda G, cores: G,
    "block": _blocks,
    "diag": lambda G, cores: np.diag(np.diagonal(G)),
}


def _root(eigen: tuple[Array, Array], threshold: float) -> Array:
    values, vectors = eigen
    kept = values >= threshold
    root: Array = vectors[:, kept] / np.sqrt(values[kept])
    return root


def _moved(v: Array, step: Array, cores: Sequence[Array], phi: Sequence[Array]) -> Array:
    """Response (n,) with the last of all weights ``v`` moved by a step."""
    moved = v.copy()
    moved[len(v) - len(step) :] += step
    parts = np.split(moved, np.cumsum([V.size for V in cores])[:-1])
    F = [part.reshape(V.shape) @ p for part, V, p in zip(parts, cores, phi, strict=True)]
    total: Array = np.prod(F, axis=0).sum(axis=0)
    return total


def _draws(n_weights: int, n_draws: int, seed: int) -> Array:
    """Standard normal numbers (P, n_draws), each draw from a seed of its own."""
    seeds = range(seed, seed + n_draws)
    return np.stack([np.random.RandomState(k).randn(n_weights) for k in seeds], axis=1)
