"""Slow, plain answers to hold the library against: dense tensors, complex steps, loops.

Nothing here computes with the library's own networks. The response is a dense weight tensor times a
dense Kronecker product of features, and it is a polynomial in the weights, so the complex step
``Im f(v + ih) / h`` is its derivative to the last bit, whatever ``h``.
"""

import itertools
from dataclasses import dataclass, replace
from functools import reduce

import mpmath
import numpy as np

from tensorlace.columns.bases import (
    BSpline,
    Chebyshev,
    Cosine,
    Fourier,
    Indicator,
    Legendre,
    Levels,
    Polynomial,
    Sine,
    UnitPolynomial,
)
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Full, Last
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.sum import Sum
from tensorlace.rows.memory import MemoryRows

STEP = 1e-100

MIX = (
    Chebyshev(3),
    Cosine(4, lengthscale=0.3),
    Indicator(2),
    BSpline(5, degree=2),
    UnitPolynomial(3),
    Fourier(5),
    Legendre(4),
    Sine(3),
    Polynomial(2),
)


@dataclass(frozen=True)
class Problem:
    """A table, a network on it and precisions: all that an objective needs."""

    bases: tuple
    u: np.ndarray  # (D, N)
    y: np.ndarray  # (N,)
    weight: np.ndarray | None  # (N,)
    cores: tuple  # D arrays (R, I_d), perhaps (1, Σ I_d) of a sum of one-column functions
    beta: float
    gamma: tuple  # as the cores

    @property
    def phi(self):
        return [basis.phi(x) for basis, x in zip(self.bases, self.u, strict=True)]

    @property
    def w(self):
        return np.ones(self.y.size) if self.weight is None else self.weight

    @property
    def v(self):
        return vec(self.cores)

    @property
    def g(self):
        return vec(self.gamma)

    @property
    def network(self):
        """What is under test: the library's network of the same cores."""
        D = len(self.bases)
        products = CPD(self.cores[:D])
        if len(self.cores) == D:
            return products
        (functions,) = self.cores[D:]
        return Sum((products, Additive(functions, tuple(b.n for b in self.bases))))

    def rows(self, **options):
        return MemoryRows(self.u, self.y, self.weight, self.bases, **{"block_rows": 16, **options})

    def at(self, cores):
        return replace(self, cores=tuple(cores))


def variables(bases, N, rng):
    """Random variables (D, N), each in the home interval of its basis."""
    return np.stack(
        [
            rng.integers(0, b.n, N).astype(float)
            if isinstance(b, Indicator | Levels)
            else rng.uniform(*b.interval, N)
            for b in bases
        ]
    )


def problem(seed, *, D=3, R=2, N=40, weighted=False, bases=None, beta=4.0, gamma=1.0, noise=0.3):
    """A random problem; the target is another network of the same kind plus noise.

    ``gamma`` is a number, or None for a different prior precision on each weight.
    """
    rng = np.random.default_rng(seed)
    if bases is None:
        bases = tuple(MIX[k] for k in rng.choice(len(MIX), D, replace=False))
    u = variables(bases, N, rng)

    def network():
        return tuple(
            R ** (-1 / len(bases)) * (0.6 * rng.standard_normal((R, b.n)) + b.constant())
            for b in bases
        )

    phi = [b.phi(x) for b, x in zip(bases, u, strict=True)]
    y = response(network(), phi) + noise * rng.standard_normal(N)
    weight = rng.uniform(0.3, 3.0, N) if weighted else None
    cores = network()
    shapes = [V.shape for V in cores]
    precisions = tuple(
        rng.uniform(0.3, 3.0, shape) if gamma is None else np.full(shape, float(gamma))
        for shape in shapes
    )
    return Problem(tuple(bases), u, y, weight, cores, beta, precisions)


# --- the response, by brute force ---


def vec(cores):
    """The paper's vec: core by core, rank term by rank term, order by order."""
    return np.array([x for V in cores for row in V for x in row])


def unvec(v, shapes):
    """The inverse of :func:`vec`."""
    ends = np.cumsum([R * n for R, n in shapes])
    return tuple(v[e - R * n : e].reshape(R, n) for e, (R, n) in zip(ends, shapes, strict=True))


def weight_tensor(cores):
    """The dense tensor (I_1, ..., I_D) that the cores stand for."""
    return sum(reduce(np.multiply.outer, term) for term in zip(*cores, strict=True))


def train_tensor(cores, ranks):
    """The dense tensor of a train, every entry by its definition: a product of D matrices."""
    W = np.empty([V.shape[1] for V in cores], dtype=np.result_type(*cores))
    for index in itertools.product(*map(range, W.shape)):
        M = np.eye(1)
        for V, i, (r, s) in zip(cores, index, itertools.pairwise(ranks), strict=True):
            M = M @ V[:, i].reshape(r, s)
        W[index] = M.item()
    return W


def kronecker_features(phi):
    """The Kronecker product of each row's features, (N, prod I_d)."""
    return reduce(
        lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), [p.T for p in phi]
    )


def response(cores, phi):
    """``f`` (N,) from the dense tensor."""
    return kronecker_features(phi) @ weight_tensor(cores).ravel()


def replaced(cores, d, V):
    """The cores with the d-th exchanged."""
    return (*cores[:d], V, *cores[d + 1 :])


def environments(cores, phi):
    """``Z^(d)`` (R, N) by definition: the product over the other columns."""
    F = [V @ p for V, p in zip(cores, phi, strict=True)]
    return [
        reduce(np.multiply, [f for k, f in enumerate(F) if k != d], np.ones_like(F[d]))
        for d in range(len(F))
    ]


# --- derivatives, by complex steps ---


def _steps(v):
    for k in range(v.size):
        moved = v.astype(complex)
        moved[k] += 1j * STEP
        yield moved


def jacobian(cores, phi):
    """``A`` (N, P) by complex steps in the dense response."""
    shapes, K = [V.shape for V in cores], kronecker_features(phi)
    columns = [K @ weight_tensor(unvec(v, shapes)).ravel() for v in _steps(vec(cores))]
    return np.stack([c.imag / STEP for c in columns], axis=1)


def objective(p, v=None):
    """``β/2 Σ w (y - f)² + ½ Σ γ v²``; complex weights give its analytic continuation."""
    v = p.v if v is None else v
    f = response(unvec(v, [V.shape for V in p.cores]), p.phi)
    return 0.5 * (p.beta * np.sum(p.w * (p.y - f) ** 2) + np.sum(p.g * v**2))


def gradient(p):
    """Gradient of the objective (P,) by complex steps."""
    return np.array([objective(p, v).imag / STEP for v in _steps(p.v)])


def hessian(p):
    """Hessian of the objective (P, P): complex steps in the analytic gradient.

    The response is linear in each core, so its derivative by one weight is the response with that
    weight's core replaced by a unit core: no formula of the library is needed.
    """
    shapes, K = [V.shape for V in p.cores], kronecker_features(p.phi)

    def slope(v):
        cores = unvec(v, shapes)
        A = []
        for d, (R, n) in enumerate(shapes):
            for unit in np.eye(R * n).reshape(-1, R, n):
                A.append(K @ weight_tensor(replaced(cores, d, unit)).ravel())
        misfit = K @ weight_tensor(cores).ravel() - p.y
        return p.beta * np.stack(A) @ (p.w * misfit) + p.g * v

    return np.stack([slope(v).imag / STEP for v in _steps(p.v)], axis=1)


def relative_gradient(p):
    """The gradient in the units of ``Info.gradient``."""
    A = jacobian(p.cores, p.phi)
    scale = np.hypot(np.linalg.norm(p.beta * A.T @ (p.w * p.y)), np.linalg.norm(p.g * p.v))
    return np.linalg.norm(gradient(p)) / scale


# --- posteriors ---

CURVATURES = (Full(), GGN(), BlockDiagonal(), Diag(), Last(0), Last(-1))


def positions(cores, which):
    """Where the weights of the cores ``which`` stand in the weight vector."""
    owner = np.concatenate([np.full(V.size, d) for d, V in enumerate(cores)])
    return np.concatenate([np.flatnonzero(owner == d) for d in which])


def precision_matrix(p, curvature):
    """The dense Hessian of a curvature over its Bayesian weights, and their positions."""
    everything = np.arange(p.v.size)
    if curvature == Full():
        return hessian(p), everything
    A = jacobian(p.cores, p.phi)
    H = p.beta * A.T @ (p.w[:, None] * A) + np.diag(p.g)
    if curvature == GGN():
        return H, everything
    if curvature == BlockDiagonal():
        owner = np.concatenate([np.full(V.size, d) for d, V in enumerate(p.cores)])
        return np.where(owner[:, None] == owner, H, 0.0), everything
    if curvature == Diag():
        return np.diag(np.diagonal(H)), everything
    at = positions(p.cores, (range(len(p.cores))[curvature.core],))
    return H[np.ix_(at, at)], at


def truncated(H, threshold):
    """Covariance and log-determinant of the eigendirections of ``H`` from ``threshold`` on."""
    lam, U = np.linalg.eigh(H)
    kept = (lam >= threshold) & (lam > 0)
    return (U[:, kept] / lam[kept]) @ U[:, kept].T, np.log(lam[kept]).sum(), np.sum(~kept)


def bayesian_regression(A, y, w, beta, gamma, G):
    """Mean and variance of ``G v`` in closed form, 50 digits: weights, precision by definition.

    ``A`` (N, P) and ``G`` (n, P) may hold floats or mpmath numbers; ``gamma`` is (P,).
    """
    with mpmath.workdps(50):
        A, G, y = mpmath.matrix(A), mpmath.matrix(G), mpmath.matrix(y)
        WA = mpmath.matrix(A.rows, A.cols)
        for n in range(A.rows):
            for k in range(A.cols):
                WA[n, k] = mpmath.mpf(float(w[n])) * beta * A[n, k]
        H = A.T * WA + mpmath.diag([mpmath.mpf(float(g)) for g in gamma])
        covariance = H**-1
        mean = G * (covariance * (WA.T * y))
        spread = G * covariance
        variance = [sum(spread[n, k] * G[n, k] for k in range(G.cols)) for n in range(G.rows)]
        return np.array(mean.tolist(), dtype=float).ravel(), np.array(variance, dtype=float)


# --- comparing ---


def error(actual, expected):
    """Largest difference in units of the largest number."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert np.all(np.isfinite(actual))
    size = np.max(np.abs(expected), initial=0.0)
    return float(np.max(np.abs(actual - expected), initial=0.0) / (size or 1.0))


def covariance_z(draws, covariance):
    """Deviations of the second moments of zero-mean ``draws`` (P, n), in standard errors."""
    n = draws.shape[1]
    variance = np.diagonal(covariance)
    moments = draws @ draws.T / n - covariance
    error = np.sqrt((np.multiply.outer(variance, variance) + covariance**2) / n)
    certain = error <= 1e-14 * variance.max()
    assert np.all(np.abs(moments[certain]) <= 1e-12 * variance.max())
    return moments[~certain] / error[~certain]
