"""Noise that fits: against scipy's t and quadrature."""

import numpy as np
import pytest
from scipy import integrate, stats

from tensorlace.laplace.precision import FEW_ROWS
from tensorlace.machines.noise import (
    FEWEST_DEGREES,
    Noise,
    noise_of_few_rows,
    scales,
    with_noise,
)
from tensorlace.predictive.distributions import Mixture


@pytest.mark.parametrize("degrees", [2.5, 3.0, 4.0, 6.0, 10.0])
def test_normals_make_up_students_t(degrees):
    weights, stds = scales(degrees)
    assert weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert weights @ stds**2 == pytest.approx(degrees / (degrees - 2.0), rel=1e-12)
    z = np.linspace(-8, 8, 4001)  # of 8 standard deviations
    density = (weights * stats.norm.pdf(z[:, None], 0.0, stds)).sum(axis=1)
    exact = stats.t.pdf(z, degrees)
    assert np.max(np.abs(np.log(density / exact))) < 0.08
    divergence = integrate.trapezoid(exact * np.log(exact / density), z)
    assert abs(divergence) < 6e-4


def test_no_tail_is_the_normal():
    assert [x.tolist() for x in scales(np.inf)] == [[1.0], [1.0]]


def mixture(n=30, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3), size=n).T
    return Mixture(*(rng.gamma(2.0, size=(3, n)) for _ in range(3)), weights)


def test_with_noise_changes_the_aleatoric_part_alone():
    d, log_variance = mixture(), np.linspace(-1, 1, 30)
    changed = with_noise(d, Noise(0.5, strength=1.0), log_variance)
    np.testing.assert_allclose(changed.mean, d.mean, rtol=1e-14)
    np.testing.assert_allclose(changed.epistemic_std, d.epistemic_std, rtol=1e-13)
    by = 0.5 * np.exp(0.5 * log_variance)
    np.testing.assert_allclose(changed.aleatoric_std, by * d.aleatoric_std, rtol=1e-13)
    shrunk = with_noise(d, Noise(0.5, shrink=0.8), np.zeros(30))
    np.testing.assert_allclose(shrunk.aleatoric_std, 0.4 * d.aleatoric_std, rtol=1e-13)
    np.testing.assert_allclose(shrunk.epistemic_stds, 0.8 * d.epistemic_stds, rtol=1e-13)
    heavy = with_noise(d, Noise(degrees=5.0), np.zeros(30))
    np.testing.assert_allclose(heavy.aleatoric_std, d.aleatoric_std * np.sqrt(5 / 3), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 7, 20, 49])
def test_widths_of_few_rows_are_those_of_students_t(n):
    noise = noise_of_few_rows(float(n), 1.5, tails=True)
    whole = stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975) * np.sqrt(n / (n - 1))
    left = 1.0 - n / FEW_ROWS
    assert noise.shrink == pytest.approx(1.0 + left * (whole - 1.0), rel=1e-9)
    assert noise.degrees == pytest.approx(max((n - 1.5) / left, FEWEST_DEGREES), rel=1e-12)
    assert noise.valid
    assert noise_of_few_rows(float(n), 1.5, tails=False).kind == "gaussian"


def test_enough_rows_know_their_noise():
    assert noise_of_few_rows(FEW_ROWS, 40.0, tails=True).trivial
    assert noise_of_few_rows(1.2, 1.0, tails=True).valid
