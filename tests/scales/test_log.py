"""A target above a bound: moments against integration in many digits, and the map itself."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlace.errors import InputError
from tensorlace.portable import Builder, Input, evaluate
from tensorlace.scales.log import Log
from tensorlace.scales.registry import open_scales

SCALES = [Log(), Log(high=20.0), Log(low=-3.0, high=1000.0), Log(high=5.0, rate=0.5)]
MEANS = np.array([-15.0, -6.0, -1.0, 0.0, 1.0, 2.9, 5.0, 12.0])
STDS = np.array([0.01, 0.3, 1.0, 3.0])
MEAN, STD = (x.ravel() for x in np.meshgrid(MEANS, STDS))


def exact(mean, std, scale):
    """Mean and standard deviation by integration, in 40 digits."""
    with mpmath.workdps(40):
        m, s = scale.rate * mpmath.mpf(mean), scale.rate * mpmath.mpf(std)
        low, top = mpmath.mpf(scale.low), mpmath.mpf(scale.high)
        b = 60 if np.isinf(scale.high) else max(min((mpmath.log(top - low) - m) / s, 60), -60)
        edges = [-60, *(x for x in range(-12, 40, 3) if x < b), b]

        def average(f):
            part = mpmath.quad(lambda z: f(low + mpmath.exp(m + s * z)) * mpmath.npdf(z), edges)
            return part + (0 if np.isinf(scale.high) else mpmath.ncdf(-b) * f(top))

        first = average(lambda y: y)
        return float(first), float(mpmath.sqrt(abs(average(lambda y: (y - first) ** 2))))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_moments(scale):
    got = scale.moments(MEAN, STD)
    want = np.array([exact(m, s, scale) for m, s in zip(MEAN, STD, strict=True)]).T
    np.testing.assert_allclose(got[0], want[0], rtol=2e-14)
    # where nearly all is beyond the bound, the rest is a difference of large numbers
    near = want[1] > 1e-3 * np.minimum(want[0] - scale.low, scale.high)
    np.testing.assert_allclose(got[1][near], want[1][near], rtol=1e-9)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-9, atol=1e-6 * (1 + want[0].max()))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_moments_as_a_graph(scale):
    g = Builder()
    table = g.input(Input("x", 2))
    first, second = scale.portable(g, g.column(table, 0), g.column(table, 1))
    graph = g.build({"mean": first, "std": second})
    found = evaluate(graph, {"x": np.stack([MEAN, STD], axis=1)})
    want = scale.moments(MEAN, STD)
    np.testing.assert_allclose(found["mean"], want[0], rtol=1e-12)
    size = want[0] - scale.low  # squares of that size are subtracted
    assert np.max(abs(found["std"] ** 2 - want[1] ** 2) / (size**2 + want[1] ** 2)) <= 1e-11


@given(st.floats(-700, 1e9), st.floats(0, 1e9), st.floats(-100, 100), st.floats(1e-3, 1e9))
def test_no_moment_is_outside(mean, std, low, width):
    scale = Log(low, low + width)
    m, s = scale.moments(np.array([mean]), np.array([std]))
    assert scale.low <= m[0] <= scale.high
    assert 0.0 <= s[0] <= 0.5 * (scale.high - scale.low)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_there_and_back(scale):
    y = scale.low + np.geomspace(1e-2, min(scale.high, 1e6) - scale.low, 9)
    np.testing.assert_allclose(scale.forward(scale.inverse(y)), y, rtol=1e-12)
    step = 1e-5 * (y - scale.low)
    slope = (scale.inverse(y + step) - scale.inverse(y - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(scale.log_derivative(y)), slope, rtol=1e-7)
    assert scale.forward(np.array([-1e9, 1e9])).tolist() == [scale.low, scale.high]
    assert np.all(np.isfinite(scale.inverse(np.array([scale.low, scale.low - 5.0]))))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_other_units(scale):
    own, location, unit = scale.in_units(1.5, 0.25)
    t = np.linspace(-9, 9, 7)
    want = scale.forward(1.5 + 0.25 * t)
    np.testing.assert_allclose(location + unit * own.forward(t), want, rtol=1e-14)


def test_it_ends_where_means_of_a_model_do():
    assert Log().held_within(0.0, 2.0).high == pytest.approx(np.exp(3.0), rel=1e-15)
    assert Log(high=9.0).held_within(0.0, 2.0).high == 9.0


def test_what_is_refused():
    with pytest.raises(InputError, match=r"1 of 2 targets are not above 0, such as 0"):
        Log().refuse_outside(np.array([1.0, 0.0]))
    with pytest.raises(InputError, match=r"has no other units"):
        Log().moved(2.0, 0.0)
    for low, high, rate in ((1.0, 1.0, 1.0), (-np.inf, 0.0, 1.0), (0.0, 1.0, 0.0)):
        assert not Log(low, high, rate).valid


def test_bounds_that_it_is_for():
    assert Log.of(-np.inf, np.inf) == Log()
    assert [s.name for s in open_scales(0.0, np.inf)] == ["log"]
    assert [s.name for s in open_scales(0.0, 1.0)] == ["log", "logit"]
    assert open_scales(-np.inf, np.inf) == []
