"""A target within bounds: moments against numerical integration, limits, and other units."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlace.errors import InputError
from tensorlace.portable import Builder, Input, evaluate
from tensorlace.scales import IDENTITY
from tensorlace.scales.clip import Clip
from tensorlace.scales.registry import SCALES, clipped, natural_bounds

BOUNDS = [(0.0, np.inf), (-np.inf, 2.0), (0.0, 1.0), (-0.3, 40.0)]
MEANS = np.array([-30.0, -6.0, -2.0, -0.1, 0.0, 0.4, 1.0, 3.0, 8.5, 50.0])
STDS = np.array([0.01, 0.3, 1.0, 4.0])


def exact(mean, std, low, high):
    """Mean and standard deviation by integration, in 40 digits."""
    with mpmath.workdps(40):
        m, s = mpmath.mpf(mean), mpmath.mpf(std)
        a, b = (max(min((mpmath.mpf(x) - m) / s, 60), -60) for x in (low, high))
        inner = [a, *(x for x in range(-9, 10, 3) if a < x < b), b]
        below, above = mpmath.ncdf(a), mpmath.ncdf(-b)

        def average(f):
            part = mpmath.quad(lambda z: f(m + s * z) * mpmath.npdf(z), inner)
            ends = [(p, x) for p, x in ((below, low), (above, high)) if np.isfinite(x)]
            return part + sum(p * f(mpmath.mpf(x)) for p, x in ends)

        first = average(lambda y: y)
        return float(first), float(mpmath.sqrt(abs(average(lambda y: (y - first) ** 2))))


@pytest.mark.parametrize("bounds", BOUNDS)
def test_moments(bounds):
    scale = Clip(*bounds)
    mean, std = (x.ravel() for x in np.meshgrid(MEANS, STDS))
    got = scale.moments(mean, std)
    want = np.array([exact(m, s, *bounds) for m, s in zip(mean, std, strict=True)]).T
    np.testing.assert_allclose(got[0], want[0], rtol=4e-15, atol=1e-15)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-7, atol=4e-15)
    much = want[1] > 1e-3 * std
    np.testing.assert_allclose(got[1][much], want[1][much], rtol=2e-12)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_moments_as_a_graph(bounds):
    mean, std = (x.ravel() for x in np.meshgrid(MEANS, STDS))
    g = Builder()
    table = g.input(Input("x", 2))
    first, second = Clip(*bounds).portable(g, g.column(table, 0), g.column(table, 1))
    graph = g.build({"mean": first, "std": second})
    found = evaluate(graph, {"x": np.stack([mean, std], axis=1)})
    want = Clip(*bounds).moments(mean, std)
    np.testing.assert_allclose(found["mean"], want[0], rtol=0, atol=1e-14 * (1 + abs(mean)).max())
    np.testing.assert_allclose(found["std"], want[1], rtol=1e-11, atol=1e-9)


@given(
    st.floats(-1e12, 1e12),
    st.floats(0, 1e12),
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
)
def test_no_moment_is_outside(mean, std, low, width):
    scale = Clip(low, low + width)
    m, s = scale.moments(np.array([mean]), np.array([std]))
    assert scale.low <= m[0] <= scale.high
    assert 0.0 <= s[0] <= 0.5 * (scale.high - scale.low)


def test_far_from_the_bounds_nothing_changes():
    scale = Clip(0.0, 100.0)
    mean, std = np.array([9.5, 50.0, 8.0, 95.0]), np.array([1.0, 3.0, 1.0, 1.0])
    assert scale.straight(mean, std).tolist() == [True, True, False, False]
    np.testing.assert_array_equal(scale.moments(mean[:2], std[:2]), (mean[:2], std[:2]))


def test_certain_values_go_to_the_nearest_bound():
    m, s = Clip(0.0, 1.0).moments(np.array([-2.0, 0.0, 0.5, 1.0, 3.0]), np.zeros(5))
    assert m.tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert s.tolist() == [0.0] * 5


def test_other_units():
    scale, location, unit = Clip(0.0, 10.0).in_units(4.0, 2.0)
    assert (scale, location, unit) == (Clip(-2.0, 3.0), 4.0, 2.0)
    assert Clip(0.0, 10.0).moved(2.0, 1.0) == Clip(1.0, 21.0)
    m, s = scale.moments(np.array([-1.0]), np.array([2.0]))
    both = Clip(0.0, 10.0).moments(np.array([2.0]), np.array([4.0]))
    np.testing.assert_allclose((4.0 + 2.0 * m, 2.0 * s), both, rtol=1e-15)


def test_natural_bounds():
    assert natural_bounds(0.0, 1.0, 50) == (0.0, 1.0)
    assert natural_bounds(0.0, 1.1, 50) == (0.0, np.inf)
    for none in ((-1e-9, 0.5, 50), (0.0, 1.0, 49), (0.0, 0.0, 50), (3.0, 3.0, 50)):
        assert natural_bounds(*none) == (-np.inf, np.inf)
    assert clipped(-np.inf, np.inf) is IDENTITY
    assert clipped(-np.inf, 3.0) == Clip(high=3.0)


def test_what_is_refused():
    with pytest.raises(InputError, match=r"1 of 3 targets are not from 0 to 5, such as -2"):
        Clip(0.0, 5.0).refuse_outside(np.array([1.0, -2.0, 5.0]))
    for low, high in ((1.0, 1.0), (2.0, 1.0), (-np.inf, np.inf), (np.nan, 1.0)):
        assert not Clip(low, high).valid


def test_members_name_themselves():
    for name in SCALES:
        scale = SCALES[name](0.0, 1.0)
        assert scale.name == name
        assert scale.valid
        assert scale.description
