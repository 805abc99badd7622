"""Rank-one terms that the evidence is better off without.

With a prior precision per rank-one term, a surplus term does not always die by itself: it finds a
product that fits some noise and stays at that mode. What the rows would say without it follows from
sums that exist already, because no other term's Jacobian contains it.
"""

from dataclasses import replace

import numpy as np

from tensorlace._types import Array
from tensorlace.fitting.run import Run, Start
from tensorlace.laplace.evidence import log_evidence
from tensorlace.laplace.prior_groups import per_rank_term
from tensorlace.linalg.symmetric import inverse_root
from tensorlace.solvers.linearisation import linearise

__all__ = ["drop_surplus_terms", "evidence_without"]

TIE = 1e-3
"""Evidence that a term has to be worth: one that died is worth rounding errors."""


def drop_surplus_terms(run: Run) -> Run:
    """Leave out one term after another, as long as the evidence does not fall.

    Each time the rest is fitted again from where it is, precisions included. Only for joint
    curvature and a prior precision per rank-one term that is learned; other runs are handed back.
    """
    settings = run.settings
    if not (
        settings.groups is per_rank_term
        and settings.curvature.gauss_newton
        and settings.prior.learns
        and settings.truncation.threshold is None
        and run.state.network.n_terms > 1
    ):
        return run
    best = _evidence(run)
    while run.state.network.n_terms > 1:
        scores = evidence_without(run)
        order = np.argsort(-scores, kind="stable")
        for term in order[scores[order] >= best - TIE]:
            trial = _refitted(run, int(term))
            score = _evidence(trial)
            if score >= best - TIE:
                run, best = trial, score
                break
        else:
            return run
    return run


def evidence_without(run: Run) -> Array:
    """Laplace evidence (R,) without each of the terms, the others moved by one Newton step.

    Precisions stay. ``f_r = A^(d) v_r^(d)`` for any core d, so the sums of the linearised model
    give ``‖y - f + f_r‖²`` and its slope.
    """
    network, beta, R = run.state.network, run.beta, run.state.network.n_terms
    linear = run.state.linear or linearise(run.rows, network)
    G, slope, v = linear.dense_gram(), linear.slope, network.vector
    gamma = run.groups.each(run.group_gamma)
    _, term, _ = network.labels()
    beyond = run.beyond_squares(linear.rss)
    out = np.full(R, -np.inf)
    for r in range(R):
        own = np.where(term[: network.cores[0].size] == r)[0]  # of the first core
        kept = np.flatnonzero(term != r)
        response = G[:, own] @ v[own]  # Aᵀ f_r
        rss = linear.rss + float((2.0 * slope[own] + response[own]) @ v[own])
        H = run.information * G[np.ix_(kept, kept)] + np.diag(gamma[kept])
        root = inverse_root(H)
        if root is None:
            continue
        W, logdet = root
        down = beta * (slope[kept] + response[kept]) - gamma[kept] * v[kept]
        gain = 0.5 * float(np.sum((W.T @ down) ** 2))
        out[r] = (
            beyond
            + gain
            + log_evidence(run.rows.total_weight, rss, beta, v[kept], gamma[kept], logdet, 0)
        )
    return out


def _refitted(run: Run, r: int) -> Run:
    """A new run to its end, from what is left without the term."""
    network = run.state.network
    fewer = network.with_cores(network.without_term(r))
    settings = replace(run.settings, rank=run.settings.rank - 1)
    gamma = network.without_term(r, run.gamma)
    trial = Run(run.plain_rows, settings, Start(fewer, run.beta, gamma, run.degrees))
    while trial.advance():
        pass
    trial.n_steps += run.n_steps
    trial.history = [*run.history, *trial.history]
    return trial


def _evidence(run: Run) -> float:
    _, stat = run.evaluate()
    gamma = run.groups.each(run.group_gamma)
    posterior = stat.posterior(run.information, gamma, run.settings.truncation)
    return run.evidence(stat, posterior, np.arange(len(gamma)))
