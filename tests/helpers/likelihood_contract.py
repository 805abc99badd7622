"""What every likelihood must do, against numerical derivatives and integrals.

A likelihood gets targets that it may see from `draw`, at responses of a moderate size.
"""

import numpy as np

STEP = 1e-5
"""Of central differences, whose error is about 1e-10 of a third derivative."""


def draw(likelihood, seed=0, n=40):
    """Responses (n,) and targets (n,) that the likelihood itself makes of them."""
    rng = np.random.default_rng(seed)
    f = rng.normal(0.0, 0.7, n)
    return likelihood.sample(f, 1.0, rng), f


def slope_is_the_derivative_of_the_density(likelihood):
    y, f = draw(likelihood)
    up, down = likelihood.log_density(y, f + STEP), likelihood.log_density(y, f - STEP)
    slope = likelihood.slope(y, f)
    assert np.max(np.abs((up - down) / (2 * STEP) - slope)) < 1e-7 * (1.0 + np.abs(slope).max())


def curvature_is_what_is_expected_of_the_second_derivative(likelihood):
    """By many draws at one response: ``E[-l''] = E[l'²]``, and within its error."""
    rng = np.random.default_rng(1)
    for f0 in (-0.5, 0.8):
        f = np.full(200_000, f0)
        y = likelihood.sample(f, 1.0, rng)
        squares = likelihood.slope(y, f) ** 2
        h = likelihood.curvature(y, f)
        assert np.all(h >= 0.0)
        assert abs(squares.mean() - h.mean()) < 5.0 * squares.std() / np.sqrt(len(f))


def deviance_is_least_at_zero(likelihood):
    y, f = draw(likelihood)
    assert np.all(likelihood.deviance(y, f) >= 0.0)
    # the best response of a target, by bisection of the slope, has no deviance
    low, high = np.full(y.shape, -60.0), np.full(y.shape, 60.0)
    for _ in range(200):
        middle = 0.5 * (low + high)
        rises = likelihood.slope(y, middle) > 0.0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    assert np.max(likelihood.deviance(y, low)) < 1e-10


def predictive_of_a_certain_response_is_the_density(likelihood):
    y, f = draw(likelihood)
    dist = likelihood.predictive(f, np.zeros_like(f), 1.0)
    difference = dist.logpdf(y) - likelihood.log_density(y, f)
    assert np.max(np.abs(difference)) < 0.03  # a scale mixture of few normals is not exact


def draws_have_the_moments_of_the_predictive(likelihood):
    f = np.full(100_000, 0.4)
    y = likelihood.sample(f, 1.0, np.random.default_rng(2))
    dist = likelihood.predictive(f[:1], np.zeros(1), 1.0)
    assert abs(y.mean() - dist.mean[0]) < 5.0 * y.std() / np.sqrt(len(y))
    for q in (0.1, 0.5, 0.9):
        below = np.mean(y <= dist.quantile(q)[0])
        assert abs(below - q) < 0.01


CHECKS = (
    slope_is_the_derivative_of_the_density,
    curvature_is_what_is_expected_of_the_second_derivative,
    deviance_is_least_at_zero,
    predictive_of_a_certain_response_is_the_density,
    draws_have_the_moments_of_the_predictive,
)
