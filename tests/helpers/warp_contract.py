"""What every warp promises, as functions of its class that raise where it does not hold."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from tensorlace.errors import InputError

__all__ = ["CHECKS", "dyadic", "same_bits"]


def dyadic(n=400, seed=0):
    """Values on a grid of 1/1024, with ties: shifts and powers of two round nothing."""
    return np.random.default_rng(seed).integers(-3000, 5000, n) / 1024.0


def same_bits(a, b):
    return np.array_equal(a.view(np.int64), b.view(np.int64))


def integer_weights_are_repetitions(kind):
    rng = np.random.default_rng(2)
    x = np.round(rng.normal(size=300), 2)
    w = rng.integers(0, 5, 300).astype(float)
    repeated = np.repeat(x, w.astype(int))
    assert np.allclose(kind.fit(x, w)(x), kind.fit(repeated)(x), rtol=1e-15, atol=1e-15)


def rows_without_weight_are_not_there(kind):
    x = np.concatenate([dyadic(50), [1e9, np.nan, np.inf]])
    w = np.concatenate([np.ones(50), np.zeros(3)])
    assert same_bits(kind.fit(x, w)(x[:50]), kind.fit(x[:50])(x[:50]))
    assert kind.fit(x, w).outside(x[50:51])[0]


def row_order_does_not_matter(kind):
    rng = np.random.default_rng(3)
    x = rng.lognormal(size=2000) + 50.0
    w = rng.uniform(size=2000)
    p = rng.permutation(2000)
    assert np.allclose(kind.fit(x[p])(x), kind.fit(x)(x), rtol=1e-15, atol=1e-15)
    assert np.allclose(kind.fit(x[p], w[p])(x), kind.fit(x, w)(x), rtol=1e-15, atol=1e-15)


def a_pure_frozen_function_of_rows(kind):
    x = dyadic(60)
    before = x.copy()
    warp = kind.fit(x)
    u = warp(x)
    assert np.array_equal(x, before)
    assert u is not x
    assert not np.shares_memory(u, x)
    assert u.dtype == np.float64
    assert u.shape == x.shape
    assert warp(x[:0]).shape == (0,)
    assert warp(x[:1]).shape == (1,)
    assert np.array_equal(pickle.loads(pickle.dumps(warp))(x), u)
    assert np.array_equal(warp(x[::2]), u[::2])
    with pytest.raises(FrozenInstanceError):
        warp.interval = True


def training_rows_land_in_the_interval(kind):
    assert isinstance(kind.interval, bool)
    if kind.interval:
        x = np.random.default_rng(8).lognormal(sigma=3.0, size=500)
        u = kind.fit(x)(np.sort(x))
        assert u[0] == 0.0
        assert u[-1] == 1.0
        assert np.all(np.diff(u) > 0.0)


def beyond_the_range_is_outside(kind):
    outside = kind.fit(np.array([1.0, 2.0, 4.0])).outside(np.array([0.999, 1.0, 4.0, 4.001]))
    assert outside.tolist() == [True, False, False, True]
    assert outside.dtype == np.bool_


def rows_that_cannot_be_are_refused(kind):
    for x, w in ((np.zeros(0), None), (np.zeros(3), np.zeros(3))):
        with pytest.raises(InputError, match="1 or more rows"):
            kind.fit(x, w)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(InputError, match="1 of 3 rows are not finite"):
            kind.fit(np.array([1.0, bad, 2.0]))


CHECKS = (
    integer_weights_are_repetitions,
    rows_without_weight_are_not_there,
    row_order_does_not_matter,
    a_pure_frozen_function_of_rows,
    training_rows_land_in_the_interval,
    beyond_the_range_is_outside,
    rows_that_cannot_be_are_refused,
)
