"""A target between two bounds: moments against integration in many digits, and the map itself."""

import mpmath
import numpy as np
import pytest

from tensorlace.errors import InputError
from tensorlace.portable import Builder, Input, evaluate
from tensorlace.scales.logit import Logit

SCALES = [Logit(), Logit(-2.0, 30.0), Logit(0.0, 1.0, 0.5, 1.5)]
MEANS = np.array([-30.0, -4.0, -0.5, 0.0, 2.0, 8.0])
MEAN, STD = (x.ravel() for x in np.meshgrid(MEANS, [1e-4, 0.3, 2.0, 5.0]))


def exact(mean, std, scale):
    """Mean and standard deviation by integration, in 30 digits."""
    with mpmath.workdps(30):
        m, s = scale.rate * mpmath.mpf(mean) + scale.shift, scale.rate * mpmath.mpf(std)
        kink = max(min(-m / s, 12), -12)
        edges = sorted({-13, -6, -2, kink - 0.5, kink, kink + 0.5, 2, 6, 13})

        def share(z):
            return 1 / (1 + mpmath.exp(-m - s * z))

        def average(f):
            return mpmath.quad(lambda z: f(share(z)) * mpmath.npdf(z), edges)

        first = average(lambda y: y)
        width = scale.high - scale.low
        spread = mpmath.sqrt(average(lambda y: (y - first) ** 2))
        return float(scale.low + width * first), float(width * spread)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_moments(scale):
    got = scale.moments(MEAN, STD)
    want = np.array([exact(m, s, scale) for m, s in zip(MEAN, STD, strict=True)]).T
    np.testing.assert_allclose(got[0], want[0], rtol=1e-11, atol=1e-13 * (scale.high - scale.low))
    np.testing.assert_allclose(got[1], want[1], rtol=1e-10, atol=1e-12 * (scale.high - scale.low))


def test_moments_of_wide_log_odds():
    m, s = Logit().moments(np.array([3.0]), np.array([10.0]))
    want = exact(3.0, 10.0, Logit())
    np.testing.assert_allclose((m[0], s[0]), want, rtol=1e-6)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_moments_as_a_graph(scale):
    g = Builder()
    table = g.input(Input("x", 2))
    first, second = scale.portable(g, g.column(table, 0), g.column(table, 1))
    graph = g.build({"mean": first, "std": second})
    found = evaluate(graph, {"x": np.stack([MEAN, STD], axis=1)})
    want = scale.moments(MEAN, STD)
    np.testing.assert_allclose(found["mean"], want[0], rtol=1e-12)
    np.testing.assert_allclose(found["std"], want[1], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_there_and_back(scale):
    width = scale.high - scale.low
    y = scale.low + width * np.array([1e-4, 0.1, 0.5, 0.7, 0.999])
    np.testing.assert_allclose(scale.forward(scale.inverse(y)), y, rtol=1e-12)
    step = 1e-6 * np.minimum(y - scale.low, scale.high - y)
    slope = (scale.inverse(y + step) - scale.inverse(y - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(scale.log_derivative(y)), slope, rtol=1e-5)
    assert scale.forward(np.array([-1e9, 1e9])).tolist() == [scale.low, scale.high]
    ends = np.array([scale.low, scale.high, scale.low - 5.0, scale.high + 5.0])
    assert np.all(np.isfinite(scale.inverse(ends)))
    own, location, unit = scale.in_units(1.5, 0.25)
    t = np.linspace(-9, 9, 7)
    np.testing.assert_allclose(location + unit * own.forward(t), scale.forward(1.5 + 0.25 * t))


def test_what_is_refused():
    with pytest.raises(InputError, match="2 of 3 targets are not between 0 and 1, such as 0"):
        Logit().refuse_outside(np.array([0.0, 0.5, 1.0]))
    for low, high, rate in ((1.0, 1.0, 1.0), (0.0, np.inf, 1.0), (0.0, 1.0, 0.0)):
        assert not Logit(low, high, rate).valid
    assert Logit.of(-np.inf, np.inf) == Logit()
    assert Logit.of(0.0, 100.0) == Logit(0.0, 100.0)
