"""Rows that count by Student's t are rows with other weights, to the same bits everywhere."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlace.likelihoods.student import log_density, size_counts
from tensorlace.rows.reweighted import ReweightedRows, Tails, counts_of_sizes, log_likelihood
from tensorlace.solvers.als import core_system
from tensorlace.solvers.linearisation import linearise, loss, residual_curvature
from tensorlace.solvers.products import block_grams, point
from tests.helpers.oracles import problem, replaced, response

WEIGHTED = pytest.mark.parametrize("weighted", [False, True])


def everything(rows, network):
    """Sums that solvers and curvatures ask for."""
    linear, at = linearise(rows, network), point(rows, network)
    system = core_system(rows, network, 1)
    return [
        *(linear.dense_gram(), linear.slope, linear.rss, residual_curvature(rows, network)),
        *(at.slope, at.target, at.rss, *block_grams(rows, network)),
        *(system.gram, system.residual, loss(rows, network)),
    ]


def anchored(p, seed=5):
    """Tails at a network that is not the one in question, and the weights they give."""
    rng = np.random.default_rng(seed)
    V = p.cores[0] + 0.3 * rng.standard_normal(p.cores[0].shape)
    cores = replaced(p.cores, 0, V)
    tails = Tails(p.network.with_cores(cores), precision=3.0, degrees=4.0)
    squares = 3.0 * (p.y - response(cores, p.phi)) ** 2
    return tails, 5.0 / (4.0 + squares)


@WEIGHTED
@pytest.mark.parametrize("N", [20, 300])
def test_sums_are_those_of_rows_with_these_weights(weighted, N):
    p = problem(0, D=3, R=2, N=N, weighted=weighted)
    tails, tau = anchored(p)
    explicit = replace(p, weight=p.w * tau)
    with p.rows(block_rows=16) as rows, explicit.rows(block_rows=16) as plain:
        found = everything(ReweightedRows(rows, tails), p.network)
        for a, b in zip(found, everything(plain, p.network), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@WEIGHTED
def test_threads_and_memory_do_not_change_a_bit(weighted):
    p = problem(1, D=3, R=3, N=1000, weighted=weighted)
    tails, _ = anchored(p)

    def found(**options):
        with p.rows(block_rows=32, **options) as rows:
            again = ReweightedRows(rows, tails)
            first = everything(again, p.network)
            for a, b in zip(first, everything(again, p.network), strict=True):
                assert np.array_equal(a, b)  # what is kept between passes does not show
            return [*first, counts_of_sizes(rows, p.network, 2.0), log_likelihood(rows, tails)]

    reference = found()
    for options in ({"threads": 2}, {"memory_budget": 0}, {"threads": 2, "memory_budget": 0}):
        assert all(map(np.array_equal, found(**options), reference))


@WEIGHTED
def test_counts_and_likelihood(weighted):
    p = problem(2, D=2, N=50, weighted=weighted)
    tails, _ = anchored(p)
    squares = 3.0 * (p.y - tails.network.response(p.phi)) ** 2
    with p.rows(block_rows=8) as rows:
        counts = counts_of_sizes(rows, tails.network, 3.0)
        likelihood = log_likelihood(rows, tails)
    np.testing.assert_allclose(counts, size_counts(squares, p.w), atol=1e-9)
    expected = p.w @ (log_density(squares, 4.0) + 0.5 * np.log(3.0))
    assert likelihood == pytest.approx(expected, rel=1e-12)


def test_totals_stay_those_of_the_rows():
    p = problem(3, N=40, weighted=True)
    tails, _ = anchored(p)
    with p.rows() as rows:
        again = ReweightedRows(rows, tails)
        assert (again.n_rows, again.total_weight) == (rows.n_rows, rows.total_weight)
        assert again.at(p.network) is again
