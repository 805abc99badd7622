"""NIST's certified regressions: at D = 1 the machine is polynomial regression, to the digit.

The certified values are the exact least-squares solutions, computed here in rational numbers.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from tensorlace import IllConditionedWarning, TNKMRegressor
from tensorlace.columns.bases.basis import Basis
from tensorlace.networks.cpd import CPD
from tensorlace.rows.memory import MemoryRows
from tensorlace.solvers.als import sweep
from tests.helpers.data import nist, requires_data

SOLVERS = ["als", "gauss_newton"]


def least_squares(A, y):
    """Exact solution of the normal equations of rational rows ``A`` and responses ``y``."""
    n = len(A[0])
    M = [
        [sum(a[i] * a[j] for a in A) for j in range(n)]
        + [sum(a[i] * t for a, t in zip(A, y, strict=True))]
        for i in range(n)
    ]
    for i in range(n):  # Gauss-Jordan; the Gram matrix is positive definite: no pivot is zero
        M[i] = [m / M[i][i] for m in M[i]]
        for k in range(n):
            if k != i:
                M[k] = [a - M[k][i] * b for a, b in zip(M[k], M[i], strict=True)]
    return [row[-1] for row in M]


def monomials(x, n):
    return [[t**k for k in range(n)] for t in x]


def combined(coefficients, functions):
    """Polynomial ``Σ c_i p_i`` for polynomials given as lists of coefficients."""
    out = [Fraction(0)] * max(map(len, functions))
    for c, p in zip(coefficients, functions, strict=True):
        for k, v in enumerate(p):
            out[k] += c * v
    return out


def times(p, q):
    return [
        sum(p[i] * q[k - i] for i in range(len(p)) if 0 <= k - i < len(q))
        for k in range(len(p) + len(q) - 1)
    ]


RECURRENCES = {  # p_(k+1) = a u p_k + b p_(k-1)
    "polynomial": lambda k: (Fraction(1), Fraction(0)),
    "chebyshev": lambda k: (Fraction(2), Fraction(-1)),
    "legendre": lambda k: (Fraction(2 * k + 1, k + 1), Fraction(-k, k + 1)),
}


def basis_functions(basis, u, n):
    """The first ``n`` functions of a basis, as polynomials in the variable ``u`` is written in."""
    functions = [[Fraction(1)], u]
    for k in range(1, n - 1):
        a, b = RECURRENCES[basis](k)
        functions.append(combined([a, b], [times(u, functions[-1]), functions[-2]]))
    return functions[:n]


def digits(coefficients, certified):
    """Fewest correct digits over the coefficients (log relative error), at most 16."""
    errors = [abs((c - e) / e) for c, e in zip(coefficients, certified, strict=True)]
    return min(-math.log10(max(float(error), 1e-16)) for error in errors)


def test_the_exact_solver():
    # the published certified values of Norris have 15 digits; here y = 2 + 3x and one outlier
    A = monomials([Fraction(k) for k in range(3)], 2)
    assert least_squares(A, [Fraction(2), Fraction(5), Fraction(8)]) == [2, 3]
    assert least_squares(A, [Fraction(0), Fraction(0), Fraction(6)]) == [-1, 3]
    assert digits([1.001, 2.0], [1, 2]) == pytest.approx(3)
    # T_2 = 2u² - 1 and P_2 = (3u² - 1)/2 at u = (x - 10)/10
    u = [Fraction(-1), Fraction(1, 10)]
    assert basis_functions("chebyshev", u, 3)[2] == [1, Fraction(-4, 10), Fraction(2, 100)]
    assert basis_functions("legendre", u, 3)[2] == [1, Fraction(-3, 10), Fraction(3, 200)]


def machine(x, y, n_basis, basis, warp, solver="als"):
    """A fitted machine with flat prior and one column, and its exact coefficients in units of y."""
    X, y = np.array([[float(t)] for t in x]), np.array([float(t) for t in y])
    model = TNKMRegressor(
        rank=1,
        n_basis=n_basis,
        basis=basis,
        warp=warp,
        solver=solver,
        noise_precision=1.0,
        prior_precision=0.0,
        tol=1e-14,
        random_state=0,
    ).fit(X, y)
    (fitted,) = model.machines_
    core = fitted.fit.cores[0][0]
    coefficients = [Fraction(fitted.target.scale) * Fraction(float(v)) for v in core]
    coefficients[0] += Fraction(fitted.target.location)
    return fitted, coefficients


@requires_data
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("name", "n", "least"), [("norris", 2, 11), ("pontius", 3, 12)])
def test_raw_monomials(name, n, least, solver):
    X, y = nist(name)
    x = [row[0] for row in X]
    _, coefficients = machine(x, y, n, "polynomial", "identity", solver)
    assert digits(coefficients, least_squares(monomials(x, n), y)) >= least


@requires_data
@pytest.mark.parametrize("solver", SOLVERS)
def test_filip_in_chebyshev_polynomials(solver):
    X, y = nist("filip")
    x = [row[0] for row in X]
    fitted, coefficients = machine(x, y, 11, "chebyshev", "minmax", solver)
    (u,) = fitted.columns.variables(np.array([[float(t)] for t in x]))
    design = [[p[0] for p in basis_functions("chebyshev", [Fraction(t)], 11)] for t in u.tolist()]
    assert digits(coefficients, least_squares(design, y)) >= 13


@requires_data
@pytest.mark.parametrize("solver", SOLVERS)
def test_filip_in_raw_monomials_warns(solver):
    X, y = nist("filip")
    with pytest.warns(IllConditionedWarning, match="singular to working precision.*'chebyshev'"):
        TNKMRegressor(
            rank=1,
            n_basis=11,
            basis="polynomial",
            warp="identity",
            solver=solver,
            prior_precision=0.0,
            noise_precision=1.0,
        ).fit(np.array(X, dtype=float), np.array(y, dtype=float))


E_WAMPLER = [759, -2048, 2048, -2048, 2523, -2048, 2048, -2048, 1838, -2048, 2048]
E_WAMPLER = [Fraction(e) for e in [*E_WAMPLER, *E_WAMPLER[-2::-1]]]


def wampler(number):
    x = [Fraction(k) for k in range(21)]
    y = [sum((t / (10 if number == 2 else 1)) ** k for k in range(6)) for t in x]
    size = {1: 0, 2: 0, 3: 1, 4: 100, 5: 10_000}[number]
    return x, [t + size * e for t, e in zip(y, E_WAMPLER, strict=True)]


def test_wampler_residuals_are_orthogonal():
    # so the certified coefficients are those of the polynomial without residuals
    for number in range(1, 6):
        x, y = wampler(number)
        certified = [Fraction(1, 10**k if number == 2 else 1) for k in range(6)]
        assert least_squares(monomials(x, 6), y) == certified


@pytest.mark.parametrize(("solver", "basis"), [("als", "polynomial"), ("gauss_newton", "legendre")])
@pytest.mark.parametrize(("number", "least"), [(1, 9), (2, 9), (3, 9), (4, 8.5), (5, 7.5)])
def test_wampler(number, least, solver, basis):
    """On the home interval [-1, 1], brought back to powers of x exactly."""
    x, y = wampler(number)
    _, coefficients = machine(x, y, 6, basis, "minmax", solver)
    in_x = basis_functions(basis, [Fraction(-1), Fraction(1, 10)], 6)
    assert digits(combined(coefficients, in_x), least_squares(monomials(x, 6), y)) >= least


@pytest.mark.parametrize(("number", "least"), [(1, 9), (2, 9), (3, 9), (4, 7.3), (5, 5.3)])
def test_wampler_in_raw_monomials(number, least):
    """As good as LAPACK's QR (9.6, 10.4, 9.5, 7.8, 5.8 digits): ``Aᵀ(y - f)`` rounds by ε‖A‖‖r‖."""
    x, y = wampler(number)
    _, coefficients = machine(x, y, 6, "polynomial", "identity")
    assert digits(coefficients, least_squares(monomials(x, 6), y)) >= least


class Table(Basis):
    """Columns of a given matrix as "functions" of the row number."""

    name, interval, bounded = "table", None, True

    def __init__(self, A):
        object.__setattr__(self, "n", A.shape[1])
        object.__setattr__(self, "A", A)

    def __hash__(self):
        return id(self)

    def __eq__(self, other):
        return self is other

    def phi(self, u):
        return np.ascontiguousarray(self.A[u.astype(int)].T)

    def psi(self, u):
        i, j = np.triu_indices(self.n)
        return self.phi(u)[i] * self.phi(u)[j]

    def expansion(self):
        i, j = np.triu_indices(self.n)
        C = np.zeros((self.n, self.n, i.size))
        C[i, j, np.arange(i.size)] = C[j, i, np.arange(i.size)] = 1.0
        return C

    def constant(self):
        raise NotImplementedError


@requires_data
def test_longley_through_the_core_solver():
    """Seven nearly collinear columns: one core, sweeps of ALS as refinements."""
    X, y = nist("longley")
    A = [[Fraction(1), *row] for row in X]
    table = Table(np.array(A, dtype=float))
    rows = MemoryRows(
        np.arange(len(y), dtype=float)[None], np.array(y, dtype=float), None, [table], block_rows=64
    )
    network = CPD((np.zeros((1, 7)),))
    for _ in range(3):
        network, info = sweep(rows, network, 1.0, (np.zeros((1, 7)),))
    assert info.rcond < 1e-8
    coefficients = [Fraction(float(v)) for v in network.cores[0][0]]
    assert digits(coefficients, least_squares(A, y)) >= 11
