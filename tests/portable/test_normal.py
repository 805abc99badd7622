"""The normal distribution function as a graph, in every runtime."""

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm

from tensorlace.portable.normal import portable_normal
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.portable import by_javascript, by_numpy, by_onnx, graph_of_columns

X = np.concatenate([np.linspace(-37.0, 37.0, 4001), [0.0, -0.0, 1e-12, -1e-12, 40.0, -40.0]])


def test_in_numpy():
    below = by_numpy(graph_of_columns(lambda g, x: portable_normal(g, x)[0]), [X])
    # the digits that are lost far in the tail are those of the exponential
    np.testing.assert_allclose(below, ndtr(X), rtol=3e-13, atol=1e-300)
    near = abs(X) < 6
    np.testing.assert_allclose(below[near], ndtr(X[near]), rtol=2e-14)
    density = by_numpy(graph_of_columns(lambda g, x: portable_normal(g, x)[1]), [X])
    np.testing.assert_allclose(density, norm.pdf(X), rtol=1e-12, atol=1e-300)


def test_other_runtimes(javascript):
    graph = graph_of_columns(lambda g, x: portable_normal(g, x)[0])
    want = by_numpy(graph, [X])
    np.testing.assert_allclose(by_onnx(graph, [X]), want, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(by_javascript(javascript, graph, [X]), want, rtol=1e-12)
