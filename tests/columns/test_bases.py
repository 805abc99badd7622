"""Each basis against its own definition, and what single ones promise beyond their contract."""

import mpmath
import numpy as np
import pytest
from numpy.polynomial import chebyshev, legendre
from scipy import interpolate

from tensorlace.columns.bases import (
    BSpline,
    Chebyshev,
    Cosine,
    Fourier,
    Indicator,
    Legendre,
    Levels,
    Missing,
    Polynomial,
    Sine,
    UnitPolynomial,
)
from tensorlace.columns.bases.basis import harmonics, powers
from tensorlace.errors import InputError
from tensorlace.networks.gram import expand, moments, padded
from tests.helpers.basis_contract import points

EPS = np.finfo(float).eps
SIZES = (1, 2, 3, 4, 7, 8, 16, 33, 64)
CASES = [
    *[
        kind(n)
        for kind in (UnitPolynomial, Polynomial, Chebyshev, Legendre, Cosine, Sine, Fourier)
        for n in SIZES
    ],
    *[Indicator(n) for n in (1, 2, 5, 40)],
    *[Cosine(n, lengthscale=0.2) for n in (1, 5, 16)],
    *[Sine(n, lengthscale=0.05) for n in (1, 5, 16)],
    *[BSpline(n, degree=p) for p in (0, 1, 2, 3, 5) for n in (p + 1, p + 2, p + 9)],
    *[Levels(n) for n in (1, 2, 3, 6, 40)],
]
PLAIN = [basis for basis in CASES if not isinstance(basis, Indicator | Levels)]
CASES += [Missing(basis) for basis in PLAIN if basis.n < 9]
CODES = (Indicator, Levels)


def unwrapped(basis):
    """The basis, or what it wraps."""
    return basis.base if isinstance(basis, Missing) else basis


ALL = pytest.mark.parametrize("basis", CASES, ids=repr)


@ALL
def test_products_close_to_the_last_digits(basis):
    u = points(basis)
    phi, psi, C = basis.phi(u), basis.psi(u), basis.closure()
    left = phi[:, None] * phi[None]
    right = np.tensordot(C, psi, 1)
    # The scale is the size of what is added up on the right. Waves and orthogonal polynomials
    # have zeros, next to which they are only accurate relative to their amplitude of 1.
    size = abs(psi)
    if not isinstance(unwrapped(basis), UnitPolynomial | Polynomial | BSpline | Indicator | Levels):
        size = np.maximum(size, 1.0)
    assert np.all(abs(left - right) <= 1e-14 * np.tensordot(abs(C), size, 1))


@ALL
def test_number_of_product_functions(basis):
    if isinstance(basis, Missing):
        assert basis.n == basis.base.n + 1
        assert basis.closure().shape[2] == basis.base.closure().shape[2] + 1
        return
    n = basis.n
    expected = {
        Sine: 2 * n + 1,
        Indicator: n,
        Levels: n,
        Fourier: 2 * n - n % 2,
    }.get(type(basis), 2 * n - 1)
    if isinstance(basis, BSpline):
        p = basis.degree
        expected = n * (p + 1) - p * (p + 1) // 2
        assert expected <= n * (p + 1)
    assert basis.closure().shape[2] == expected


@ALL
def test_constants_are_exact_where_they_can_be(basis):
    c = basis.constant()
    assert c.shape == (basis.n,)
    if isinstance(basis, CODES):
        u = np.arange(basis.n, dtype=float)
    else:
        u = np.linspace(*basis.interval, 501)
    if isinstance(basis, Missing):
        assert np.array_equal(c[:-1], basis.base.constant())
        assert abs(basis.phi(np.array([np.nan])).T @ c - 1.0) <= 8 * EPS
    error = abs(basis.phi(u).T @ c - 1.0).max()
    if not isinstance(unwrapped(basis), Sine | UnitPolynomial):
        assert error <= 8 * EPS
        return
    assert np.abs(c).max() < 10.0  # moderate coefficients, by design
    best = np.linalg.lstsq(basis.phi(u).T, np.ones(u.size), rcond=1e-4)[0]
    assert error <= 1.5 * abs(basis.phi(u).T @ best - 1.0).max() + 1e-3
    if unwrapped(basis).n >= 8 and unwrapped(basis).n % 2:
        assert error < 0.01


@ALL
def test_names_and_intervals(basis):
    assert basis.name == type(basis).name
    if basis.interval is not None:
        assert basis.interval[0] < basis.interval[1]
    assert basis.interval == unwrapped(basis).interval
    assert basis.bounded == isinstance(
        unwrapped(basis), Cosine | Sine | Fourier | BSpline | Indicator | Levels
    )


@ALL
def test_what_no_row_had(basis):
    u = np.array([np.nan, -1.0, 0.0])
    expected = [True, isinstance(basis, CODES), False]
    assert basis.novel(u).tolist() == ([False] * 3 if isinstance(basis, Missing) else expected)
    if isinstance(basis, CODES):
        assert np.array_equal(basis.phi(u)[:, :2], np.stack([basis.typical()] * 2, axis=1))


def test_a_missing_value_is_a_value():
    basis = Missing(BSpline(3, degree=1))
    phi = basis.phi(np.array([0.25, np.nan]))
    assert phi.tolist() == [[0.5, 0.25], [0.5, 0.5], [0.0, 0.25], [0.0, 1.0]]
    assert np.array_equal(basis.typical(), phi[:, 1])


@pytest.mark.parametrize("basis", [Levels(5), Missing(Cosine(4)), Missing(BSpline(5))], ids=repr)
@pytest.mark.parametrize("R", [1, 3])
def test_structured_gram_of_codes_and_gaps(basis, R):
    rng = np.random.default_rng(R)
    u = rng.integers(-1, 4, 200).astype(float) if basis == Levels(5) else rng.uniform(0, 1, 200)
    u[::7] = -1.0 if basis == Levels(5) else np.nan
    Z = rng.standard_normal((R, 200))
    A = np.einsum("rn,in->nri", Z, basis.phi(u)).reshape(200, -1)
    G = expand(moments(padded(basis.psi(u)), Z), basis.closure(), R)
    assert np.max(np.abs(G - A.T @ A)) <= 1e-14 * np.max(A.T @ A)


def test_levels_share_a_constant():
    assert Levels(3).phi(np.array([0.0, 1.0, -1.0, 2.0, np.nan])).tolist() == [
        [1.0] * 5,
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0],
    ]


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", None, True])
@pytest.mark.parametrize(
    "kind",
    [
        *(UnitPolynomial, Polynomial, Chebyshev, Legendre, Cosine, Sine, Fourier, BSpline),
        *(Indicator, Levels),
    ],
)
def test_bad_size(kind, n):
    with pytest.raises(InputError, match=f"the {kind.name} basis was given n = .* at least"):
        kind(n)


def test_bad_parameters():
    with pytest.raises(InputError, match="n = 3; use a whole number of at least 4"):
        BSpline(3)
    with pytest.raises(InputError, match="degree = -1"):
        BSpline(3, degree=-1)
    for bad in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="lengthscale"):
            Cosine(3, lengthscale=bad)
        with pytest.raises(InputError, match="lengthscale"):
            Sine(3, lengthscale=bad)


# Each basis against its definition, in 40 digits.


def exact(f, n, u):
    """Functions ``f(i, u)`` of exact arithmetic, as floats of shape (n, rows)."""
    with mpmath.workdps(40):
        return np.array([[float(f(i, mpmath.mpf(float(x)))) for x in u] for i in range(n)])


def cosine_scale(i, l=None):
    return (
        1 if i == 0 else mpmath.sqrt(2) * (mpmath.exp(-((i * mpmath.pi * l) ** 2) / 4) if l else 1)
    )


def sine_scale(w, l):
    density = mpmath.sqrt(2 * mpmath.pi) * l * mpmath.exp(-((mpmath.pi * w / 2) ** 2) * l**2 / 2)
    return mpmath.sqrt(density)


def clip(x, low, high):
    return min(max(x, mpmath.mpf(low)), mpmath.mpf(high))


def fourier_function(i, x):
    if i == 0:
        return 1
    wave = mpmath.cos if i % 2 else mpmath.sin
    return mpmath.sqrt(2) * wave(2 * mpmath.pi * ((i + 1) // 2) * x)


def unit_function(n):
    return lambda i, x: x**i / mpmath.sqrt(mpmath.fsum(x ** (2 * j) for j in range(n)))


DEFINITIONS = [
    (UnitPolynomial(6), unit_function(6)),
    (UnitPolynomial(33), unit_function(33)),
    (Polynomial(20), lambda i, x: x**i),
    (Chebyshev(33), lambda i, x: mpmath.re(mpmath.cos(i * mpmath.acos(x)))),
    (Legendre(33), mpmath.legendre),
    (Cosine(33), lambda i, x: cosine_scale(i) * mpmath.cos(i * mpmath.pi * clip(x, 0, 1))),
    (
        Cosine(9, lengthscale=0.25),
        lambda i, x: cosine_scale(i, 0.25) * mpmath.cos(i * mpmath.pi * clip(x, 0, 1)),
    ),
    (
        Sine(20, lengthscale=0.125),
        lambda i, x: (
            sine_scale(i + 1, 0.125)
            * mpmath.sin(mpmath.pi * (i + 1) * (clip(x, -0.5, 1.5) + 0.5) / 2)
        ),
    ),
    (Fourier(32), fourier_function),
    (Fourier(33), fourier_function),
]


@pytest.mark.parametrize(("basis", "f"), DEFINITIONS, ids=lambda v: repr(v).split(" at 0x")[0][:40])
def test_definition(basis, f):
    u = points(basis, 23)
    expected = exact(f, basis.n, u)
    # One rounding of u counts once per degree or harmonic.
    assert np.allclose(basis.phi(u), expected, rtol=3 * basis.n * EPS, atol=3 * basis.n * EPS)


@pytest.mark.parametrize("n", [1, 2, 5, 17])
def test_polynomials_against_numpy(n):
    x = np.linspace(-1.5, 1.5, 101)
    assert np.allclose(
        Chebyshev(n).phi(x), chebyshev.chebvander(x, n - 1).T, rtol=1e-12, atol=1e-13
    )
    assert np.allclose(Legendre(n).phi(x), legendre.legvander(x, n - 1).T, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_legendre_products_against_numpy(n):
    C = Legendre(n).closure()
    for i in range(n):
        for j in range(n):
            product = legendre.legmul(np.eye(n)[i], np.eye(n)[j])
            padded = np.zeros(2 * n - 1)
            padded[: product.size] = product
            assert np.allclose(C[i, j], padded, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("n", "p"), [(4, 3), (9, 3), (6, 1), (5, 0), (8, 2)])
def test_bspline_elements(n, p):
    knots = np.concatenate([np.zeros(p), np.arange(n - p + 1) / (n - p), np.ones(p)])
    u = np.random.default_rng(0).uniform(size=200)
    for i, row in enumerate(BSpline(n, degree=p).phi(u)):
        element = interpolate.BSpline.basis_element(knots[i : i + p + 2], extrapolate=False)
        assert np.allclose(row, np.nan_to_num(element(u)), rtol=0, atol=1e-14)


# Far from the home interval.


def test_unit_polynomial_never_overflows():
    n = 64
    x = np.array([1e300, -1e300, 1.7e308, -1.7e308, 5e-324, -0.0, 1.0, -1.0, 1e-300, 2.0, -2.0])
    basis = UnitPolynomial(n)
    expected = exact(unit_function(n), n, x)
    assert np.allclose(basis.phi(x), expected, rtol=1e-13, atol=0)
    assert basis.phi(x)[-1, 0] == 1.0
    assert basis.phi(x)[-1, 1] == -1.0
    assert basis.phi(x)[-2, 1] == 1e-300
    assert np.allclose(np.linalg.norm(basis.phi(x), axis=0), 1.0, rtol=0, atol=4 * EPS)
    assert basis.psi(x)[-1, 1] == 1.0
    assert np.isfinite(basis.phi(np.array([np.inf, -np.inf]))).all()


@pytest.mark.parametrize("kind", [Cosine, BSpline])
def test_clipped_to_the_ends(kind):
    basis = kind(6)
    ends = basis.phi(np.array([0.0, 1.0, 0.0, 1.0]))
    assert np.array_equal(basis.phi(np.array([-5.0, 7.0, -1e300, 1e300])), ends)


def test_sine_fades_to_zero_at_the_ends_of_its_domain():
    far = Sine(6).phi(np.array([-0.5, 1.5, -9.0, 1e300]))
    assert np.allclose(far, 0.0, rtol=0, atol=1e-15)
    assert np.abs(Sine(6).phi(np.array([-0.2, 1.2]))).max() > 0.1


def test_fourier_is_periodic():
    u = np.random.default_rng(1).integers(0, 1024, 100) / 1024
    assert np.allclose(Fourier(9).phi(u), Fourier(9).phi(u - 12345.0), rtol=0, atol=1e-15)
    small = u[u < 0.5]
    assert np.array_equal(Fourier(9).phi(small), Fourier(9).phi(small + 2.0**40))


def test_chebyshev_grows_and_keeps_its_sign_outside():
    x = np.array([-1e100, 1e100, -1.0000001, 1.0000001])
    T = Chebyshev(4).phi(x)
    assert np.array_equal(T[1], x)
    assert np.allclose(T[3], 4 * x**3 - 3 * x, rtol=1e-14, atol=0)


def test_unknown_codes_have_no_feature():
    assert not Indicator(3).phi(np.array([-1.0, 3.0, 0.5, np.nan])).any()


# The shared tools.


def test_powers_are_accurate():
    x = np.random.default_rng(2).uniform(0.9, 1.1, 50)
    expected = exact(lambda i, v: v**i, 100, x)
    bound = 0.5 * EPS * np.arange(100)[:, None]
    assert np.all(abs(powers(x, 100) - expected) <= (bound + EPS) * expected)
    assert powers(x, 1).shape == (1, 50)


def test_harmonics_stay_on_the_circle():
    theta = np.random.default_rng(3).uniform(-np.pi, np.pi, 50)
    E = harmonics(theta, 200)
    assert np.allclose(abs(E), 1.0, rtol=0, atol=200 * EPS)
    assert np.allclose(E.real, np.cos(np.arange(200)[:, None] * theta), rtol=0, atol=400 * EPS)
