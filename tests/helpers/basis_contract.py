"""What every basis promises, as functions of a basis that raise where it does not hold.

Accuracies are those that a sum of bounded terms can have. What single bases promise beyond (more
digits, numbers of product functions, exact constants) is tested beside their definitions.
"""

import pickle
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from tensorlace.errors import InputError
from tensorlace.networks.gram import expand, moments, padded

__all__ = ["CHECKS", "points"]

EPS = np.finfo(float).eps


def points(basis, n=257):
    """Values in the home interval, its ends, its middle, and values outside; some are missing."""
    rng = np.random.default_rng(7)
    if not basis.novel(np.array([np.nan]))[0]:  # it was fitted to missing values
        u = points(basis.base, n)
        u[::5] = np.nan
        return u
    if basis.interval is None:
        return rng.integers(-1, basis.n + 1, n).astype(float)
    low, high = basis.interval
    inside = rng.uniform(low, high, n)
    near = np.array([low, high, np.nextafter(low, high), np.nextafter(high, low), 0.0, 1e-300])
    return np.concatenate([inside, near, [0.5 * (low + high), low - 0.4, high + 0.4, 3.0, -3.0]])


def products_close(basis):
    u = points(basis)
    phi, psi, C = basis.phi(u), basis.psi(u), basis.closure()
    left, right = phi[:, None] * phi[None], np.tensordot(C, psi, 1)
    size = np.tensordot(abs(C), np.maximum(abs(psi), 1.0), 1)
    assert np.all(abs(left - right) <= 1e-14 * size)


def closure_is_symmetric_shared_and_read_only(basis):
    C = basis.closure()
    assert C.shape == (basis.n, basis.n, len(basis.psi(points(basis))))
    assert np.array_equal(C, C.transpose(1, 0, 2))
    assert C is pickle.loads(pickle.dumps(basis)).closure()
    with pytest.raises(ValueError, match="read-only"):
        C[0, 0, 0] = 2.0


def layout(basis):
    for rows in (0, 1, 5):
        u = np.linspace(0.0, 1.0, 2 * rows)[::2]  # not contiguous
        for out in (basis.phi(u), basis.psi(u)):
            assert out.shape[1] == rows
            assert out.dtype == np.float64
            assert out.flags.c_contiguous
            assert out.flags.writeable
        assert basis.phi(u).shape[0] == basis.n


def input_is_left_alone(basis):
    u = points(basis)
    before = u.copy()
    basis.phi(u)
    basis.psi(u)
    basis.novel(u)
    assert np.array_equal(u, before, equal_nan=True)


def rows_do_not_see_each_other(basis):
    u = points(basis)
    for f in (basis.phi, basis.psi):
        assert np.allclose(f(u)[:, 3:70], f(u[3:70]), rtol=8 * EPS, atol=8 * EPS)


def frozen_hashable_and_picklable(basis):
    again = pickle.loads(pickle.dumps(basis))
    assert again == basis
    assert hash(again) == hash(basis)
    with pytest.raises(FrozenInstanceError):
        basis.n = 3


def constant_is_as_near_as_it_comes(basis):
    c = basis.constant()
    assert c.shape == (basis.n,)
    assert np.abs(c).max() < 10.0  # moderate coefficients, by design
    inside = basis.interval is not None
    u = np.linspace(*basis.interval, 501) if inside else np.arange(basis.n, dtype=float)
    phi = basis.phi(u)
    best = np.linalg.lstsq(phi.T, np.ones(u.size), rcond=1e-4)[0]
    assert abs(phi.T @ c - 1.0).max() <= 1.5 * abs(phi.T @ best - 1.0).max() + 1e-3


def name_and_interval(basis):
    assert basis.name == type(basis).name
    assert isinstance(basis.bounded, bool)
    assert basis.interval is None or basis.interval[0] < basis.interval[1]


def typical_values_are_averages(basis):
    """Against adaptive quadrature between 9 points, where there is an interval."""
    assert basis.typical().shape == (basis.n,)
    basis.typical()[:] = 99.0
    assert not np.any(basis.typical() == 99.0)
    if basis.interval is None or not basis.novel(np.array([np.nan]))[0]:
        return
    low, high = basis.interval
    degree = getattr(basis, "degree", None)  # of a spline, whose knots are as many parts
    cuts = np.linspace(low, high, 9 if degree is None else basis.n - degree + 1)
    for i in {0, basis.n // 2, basis.n - 1}:
        parts = [
            integrate.quad(
                lambda x, i=i: basis.phi(np.array([x]))[i, 0], *ends, epsabs=1e-13, epsrel=1e-13
            )[0]
            for ends in pairwise(cuts)
        ]
        assert abs(basis.typical()[i] - sum(parts) / (high - low)) <= 1e-13


def structured_gram_is_the_dense_one(basis):
    """Also of values that no row had, and in one column of a network of three terms."""
    u = points(basis, 200)
    Z = np.random.default_rng(3).standard_normal((3, u.size))
    A = np.einsum("rn,in->nri", Z, basis.phi(u)).reshape(u.size, -1)
    G = expand(moments(padded(basis.psi(u)), Z), basis.closure(), 3)
    size = np.abs(A).T @ np.abs(A)
    assert np.max(np.abs(G - A.T @ A)) <= 1e-13 * np.max(size)


def bad_sizes_are_refused(basis):
    for n in (0, -1, 2.0, "3", None, True):
        with pytest.raises(InputError, match=f"the {basis.name} basis was given n = .* at least"):
            type(basis)(n)


CHECKS = (
    products_close,
    closure_is_symmetric_shared_and_read_only,
    layout,
    input_is_left_alone,
    rows_do_not_see_each_other,
    frozen_hashable_and_picklable,
    constant_is_as_near_as_it_comes,
    name_and_interval,
    typical_values_are_averages,
    structured_gram_is_the_dense_one,
)
