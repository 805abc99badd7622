"""Student's t: densities, weights and shapes beside SciPy and quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

from tensorlace.likelihoods.student import (
    DISTRUSTED,
    MOST_DEGREES,
    MOST_SURPRISING,
    furthest,
    gain_of_tails,
    information,
    log_density,
    row_weights,
    shape_of,
    size_counts,
)

DEGREES = pytest.mark.parametrize("degrees", [2.2, 4.0, 30.0])


@DEGREES
def test_density(degrees):
    z = np.array([0.0, 0.3, 1.0, 5.0, 1e3])
    expected = stats.t.logpdf(z, degrees)
    np.testing.assert_allclose(log_density(z * z, degrees), expected, rtol=1e-12)
    np.testing.assert_allclose(log_density(z * z, np.inf), stats.norm.logpdf(z), rtol=1e-14)


@DEGREES
@pytest.mark.parametrize("z", [0.0, 1.0, 6.0])
def test_a_weight_is_the_precision_that_is_expected_given_the_residual(degrees, z):
    prior = stats.gamma(degrees / 2.0, scale=2.0 / degrees)

    def density(tau):
        return prior.pdf(tau) * np.sqrt(tau) * np.exp(-0.5 * tau * z * z)

    mass = integrate.quad(density, 0.0, 50.0, limit=200)[0]
    mean = integrate.quad(lambda tau: tau * density(tau), 0.0, 50.0, limit=200)[0] / mass
    assert row_weights(np.array([z * z]), degrees)[0] == pytest.approx(mean, rel=1e-7)


@DEGREES
def test_weights_are_one_on_average_and_inform_by_the_squared_score(degrees):
    density = stats.t(degrees).pdf

    def expected(values):
        return 2.0 * integrate.quad(lambda z: values(z) * density(z), 0.0, np.inf)[0]

    assert expected(lambda z: row_weights(z * z, degrees)) == pytest.approx(1.0, rel=1e-9)
    score = expected(lambda z: (row_weights(z * z, degrees) * z) ** 2)
    assert information(degrees) == pytest.approx(score, rel=1e-9)


@pytest.mark.parametrize("degrees", [3.0, 5.0, 10.0])
def test_shape_is_that_of_highest_likelihood(degrees):
    z = 0.02 * stats.t.rvs(degrees, size=3000, random_state=np.random.default_rng(0))
    shape = shape_of(size_counts(z * z))
    nu, _, scale = stats.t.fit(z, floc=0.0)
    # counts know sizes to a tenth of their logarithm
    assert shape.degrees == pytest.approx(nu, rel=0.01)
    assert shape.precision == pytest.approx(scale**-2, rel=0.002)
    given = shape_of(size_counts(z * z), 4.0)
    assert given.degrees == 4.0
    _, _, scale = stats.t.fit(z, fdf=4.0, floc=0.0)
    assert given.precision == pytest.approx(scale**-2, rel=0.002)


def test_counts_add_up_and_weights_repeat_rows():
    rng = np.random.default_rng(1)
    squares, weight = rng.standard_normal(60) ** 2, rng.integers(0, 4, 60)
    repeated = size_counts(np.repeat(squares, weight))
    np.testing.assert_allclose(size_counts(squares, weight.astype(float)), repeated, atol=1e-12)
    halves = size_counts(squares[:30]) + size_counts(squares[30:])
    np.testing.assert_allclose(halves, size_counts(squares), atol=1e-12)
    assert size_counts(squares).sum() == pytest.approx(60.0, rel=1e-14)
    assert np.all(size_counts(np.array([0.0, np.inf])) >= 0.0)


def test_normal_residuals_gain_nothing_and_heavy_ones_what_they_should():
    rng = np.random.default_rng(2)
    normal = size_counts(rng.standard_normal(20_000) ** 2)
    assert gain_of_tails(normal) < 3e-4
    assert shape_of(normal).degrees > 0.6 * MOST_DEGREES
    heavy = stats.t.rvs(3.0, size=20_000, random_state=rng)
    likelihood = stats.t.logpdf(heavy, *stats.t.fit(heavy, floc=0.0)).mean()
    expected = likelihood - stats.norm.logpdf(heavy, scale=np.sqrt(np.mean(heavy**2))).mean()
    assert gain_of_tails(size_counts(heavy**2)) == pytest.approx(expected, abs=1e-3)


def test_how_far_a_wild_row_is_says_nothing_about_the_others():
    z = np.random.default_rng(3).standard_normal(500)
    far = [shape_of(size_counts(np.append(z, wild) ** 2)) for wild in (1e2, 1e6)]
    assert far[0] == pytest.approx(far[1], rel=1e-12)
    near = shape_of(size_counts(np.append(z, 0.2 * MOST_SURPRISING) ** 2))
    assert near.degrees > 1.3 * far[0].degrees
    weight = row_weights(far[0].precision * np.append(z, 1e2) ** 2, far[0].degrees)
    assert weight[-1] < DISTRUSTED < weight[:-1].min()


def test_furthest():
    z = np.append(np.random.default_rng(4).standard_normal(400), 50.0)
    counts = size_counts(z * z)
    expected = 50.0 * np.sqrt(shape_of(counts).precision)
    assert furthest(counts) == pytest.approx(expected, rel=0.06)  # the next size above


@pytest.mark.parametrize("squares", [[0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0], [np.inf, 1.0]])
def test_degenerate_residuals_have_a_shape(squares):
    shape = shape_of(size_counts(np.array(squares)))
    assert 2.0 < shape.degrees <= MOST_DEGREES * (1 + 1e-12)
    assert 0.0 < shape.precision < np.inf
