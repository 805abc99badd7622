"""Networks with several outputs, against single networks and complex steps."""

import numpy as np
import pytest

from tensorlace.fitting.registry import NETWORKS
from tensorlace.networks.outputs import Outputs

SIZES, K, N = (3, 2, 4), 3, 7


def problem(name, seed=0, rank=2):
    rng = np.random.default_rng(seed)
    constants = [np.eye(n)[0] for n in (*SIZES, K)]
    network = NETWORKS[name].initialise(constants, rank, rng)
    network = network.with_vector(rng.standard_normal(network.n_weights))
    return Outputs(network), [rng.standard_normal((n, N)) for n in SIZES]


def dense(outputs, phi):
    """Responses (K, n) through the dense weight tensor: one unit vector of features at a time."""
    network = outputs.network
    tensor = np.empty((*SIZES, K))
    for index in np.ndindex(*tensor.shape):
        units = [np.eye(n)[[i]].T for n, i in zip((*SIZES, K), index, strict=True)]
        tensor[index] = network.response(units)[0]
    return np.einsum("abck,an,bn,cn->kn", tensor, *phi)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NETWORKS)
def test_responses(name, seed):
    outputs, phi = problem(name, seed)
    found = outputs.response(phi)
    np.testing.assert_allclose(found, dense(outputs, phi), rtol=1e-12, atol=1e-12)
    for k in range(K):
        one = outputs.network.response(outputs.with_output(phi, k))
        np.testing.assert_allclose(found[k], one, rtol=1e-13, atol=1e-13)
    assert (outputs.n_outputs, outputs.n_columns) == (K, len(SIZES))


@pytest.mark.parametrize("name", NETWORKS)
def test_jacobian_by_complex_steps(name):
    outputs, phi = problem(name)
    network, v, h = outputs.network, outputs.network.vector, 1e-40
    expected = np.empty((K, len(v), N))
    for p in range(len(v)):
        moved = network.with_vector(v + 1j * h * np.eye(len(v))[p])
        expected[:, p] = Outputs(moved).response(phi).imag / h
    found = outputs.jacobian(phi)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    last = network.cores[-1].size
    np.testing.assert_array_equal(outputs.jacobian(phi, [len(SIZES)]), found[:, -last:])


@pytest.mark.parametrize("name", NETWORKS)
def test_gauss_newton_matrix_of_weighted_responses(name):
    outputs, phi = problem(name)
    rng = np.random.default_rng(5)
    root = rng.standard_normal((N, K, K))
    H = np.einsum("nka,nla->kln", root, root)
    A = outputs.jacobian(phi)
    expected = sum(A[:, :, n].T @ H[:, :, n] @ A[:, :, n] for n in range(N))
    np.testing.assert_allclose(outputs.gram(phi, H), expected, rtol=1e-12, atol=1e-11)


def test_one_output_is_the_network_itself():
    rng = np.random.default_rng(1)
    constants = [np.eye(n)[0] for n in SIZES]
    network = NETWORKS["cpd"].initialise(constants, 2, rng)
    more = type(network)((*network.cores, np.ones((2, 1))))
    phi = [rng.standard_normal((n, N)) for n in SIZES]
    np.testing.assert_allclose(Outputs(more).response(phi)[0], network.response(phi), rtol=1e-14)
