"""A model that chooses itself: many small fits, ranked, and the best of them mixed.

Few rows: all candidates see all rows and the Laplace evidence ranks them, so that a weight stays a
number of repetitions. From some hundreds of rows on, a part chosen by a hash of the row number is
held out, and members are picked one by one so that the mixture predicts it best. In both cases the
mixture repairs what a single pick is: overconfident.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, final

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from tensorlace.bases import Cosine
from tensorlace.bases.basis import Array, Basis
from tensorlace.candidates import Candidate, plan
from tensorlace.config import BASES, GROUPS, WARPS, Config
from tensorlace.fitting import fit_machines
from tensorlace.gauss_newton import GaussNewton
from tensorlace.machines import KernelMachine
from tensorlace.rows import MEMORY_BUDGET
from tensorlace.sources import ArraySource, Chunk, RowSource
from tensorlace.streaming import LocalPieces, Pieces
from tensorlace.subsample import hashes, largest_hash

__all__ = ["Found", "search"]

SEARCH_ROWS = 8000
"""Rows that candidates are fitted to; the members that are chosen see all rows."""

HOLD_OUT_FROM, HELD_OUT = 600, 0.2
SEARCH_STEPS, FINAL_STEPS, TOL = 45, 80, 1e-3
MEMBERS = 10
_TEMPER, _SMALLEST_WEIGHT = 15.0, 0.02
"""A difference of N / 15 in evidence is a factor of e in weight; less than 0.02 is left out."""

_DENSE_WORK = 4e12


@final
@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes
    ----------
    machines : tuple of KernelMachine
    weights : (M,) array
        Of the machines in the mixture.
    results : list of dict
        One entry per candidate: what it was, its score, its seconds and its weight.
    """

    machines: tuple[KernelMachine, ...]
    weights: Array
    results: list[dict[str, Any]]


def search(
    config: Config,
    table: RowSource | Pieces,
    *,
    given: dict[str, Any],
    seed: int,
    budget: float,
    n_members: int = MEMBERS,
    threads: int = 1,
    memory_budget: int = MEMORY_BUDGET,
    report: Callable[[int, int, str], None] | None = None,
) -> Found:
    """Choose, fit and mix.

    Parameters
    ----------
    config : Config
        Everything that is not searched.
    table : RowSource or Pieces
    given : dict
        Fields of `Candidate` that the user has fixed.
    seed : int
        Starts of all fits follow from it.
    budget : float
        Seconds, turned into a number of candidates by the cost model.
    n_members : int
        Most members of the mixture.
    threads : int
        Candidates are fitted side by side.
    report : callable, optional
        Told number, count and text of each candidate that is done.
    """
    sample = _sample(table, SEARCH_ROWS)
    total = float(len(sample.y) if sample.weight is None else sample.weight.sum())
    names = table.names
    candidates = _distinct(plan(total, len(names), budget, threads), given)
    held = np.zeros(len(sample.y), dtype=np.bool_)
    if total >= HOLD_OUT_FROM:
        held = hashes(1 << 40, len(sample.y)) < np.uint64(HELD_OUT * 2.0**64)
    train = _source(sample, ~held, names, table)
    seeds = np.random.default_rng(seed).integers(2**31, size=len(candidates)).tolist()

    def attempt(k: int) -> tuple[float, Array, float]:
        start = perf_counter()
        cut = replace(_configured(config, candidates[k], train), max_steps=SEARCH_STEPS, tol=TOL)
        (machine,) = fit_machines(cut, train, seeds=[seeds[k]], memory_budget=memory_budget)
        scores = np.zeros(0)
        if held.any():
            scores = machine.linearized(sample.X[held]).logpdf(sample.y[held])
        if report is not None:
            report(k + 1, len(candidates), str(candidates[k]))
        return machine.fit.log_evidence, scores, perf_counter() - start

    with threadpool_limits(1, user_api="blas"):  # candidates side by side, one thread each
        jobs = (delayed(attempt)(k) for k in range(len(candidates)))
        done = list(Parallel(n_jobs=threads, prefer="threads", require="sharedmem")(jobs))
    evidence = np.array([e for e, _, _ in done])
    if held.any():
        weight = None if sample.weight is None else sample.weight[held]
        counts = greedy(np.stack([scores for _, scores, _ in done]), weight, n_members)
    else:
        counts = tempered(evidence, total, n_members)
    chosen = np.flatnonzero(counts)

    def final(k: int) -> KernelMachine:
        cut = replace(_configured(config, candidates[k], table), max_steps=FINAL_STEPS, tol=TOL)
        return fit_machines(cut, table, seeds=[seeds[k]], memory_budget=memory_budget)[0]

    with threadpool_limits(1, user_api="blas"):
        finals = (delayed(final)(int(k)) for k in chosen)
        machines = Parallel(n_jobs=threads, prefer="threads", require="sharedmem")(finals)
    weights = counts / counts.sum()
    results = [
        {
            **vars(candidate),
            "log_evidence": float(e),
            "held_out_log_score": float(np.mean(scores)) if scores.size else np.nan,
            "seconds": seconds,
            "weight": float(w),
        }
        for candidate, (e, scores, seconds), w in zip(candidates, done, weights, strict=True)
    ]
    return Found(tuple(machines), weights[chosen], results)


def greedy(scores: Array, weight: Array | None, n_members: int) -> Array:
    """Members of a mixture picked one by one, the same one more than once if it helps.

    Parameters
    ----------
    scores : (K, n) array
        Log densities of held-out rows.
    weight : (n,) array or None
    n_members : int

    Returns
    -------
    (K,) array
        How often each was picked.

    Examples
    --------
    >>> greedy(np.log([[0.9, 0.1], [0.1, 0.9], [0.2, 0.2]]), None, 2)
    array([1., 1., 0.])
    """
    w = np.full(scores.shape[1], 1.0) if weight is None else weight
    counts = np.zeros(len(scores))
    mixture = np.full(scores.shape[1], -np.inf)
    for k in range(n_members):
        trial = np.logaddexp(mixture + np.log(max(k, 1)), scores) - np.log(k + 1)
        best = int(np.argmax(trial @ w))
        counts[best] += 1
        mixture = trial[best]
    return counts


def tempered(evidence: Array, n_rows: float, n_members: int) -> Array:
    """Weights (K,) of the best few by evidence: it is sure too soon, so it is taken as weaker.

    >>> tempered(np.array([0.0, -1.0, -1000.0]), 100.0, 2).round(2)
    array([0.54, 0.46, 0.  ])
    """
    best = np.argsort(-evidence, kind="stable")[:n_members]
    weights = np.zeros(len(evidence))
    weights[best] = np.exp((evidence[best] - evidence[best[0]]) * _TEMPER / n_rows)
    weights[weights < _SMALLEST_WEIGHT] = 0.0
    return np.asarray(weights / weights.sum())


def _configured(config: Config, c: Candidate, table: RowSource | Pieces) -> Config:
    """``config`` with what the candidate says."""
    D = len(table.names)
    P = (c.rank + c.additive) * c.n_basis * D
    small = min(P, table.n_rows)
    dense = GaussNewton() if small * small * max(P, table.n_rows) < _DENSE_WORK else None
    bases: tuple[Callable[[int], Basis], ...] = (BASES[c.basis],) * D
    if c.basis == "cosine":
        bases = (partial(Cosine, lengthscale=c.lengthscale),) * D
    return replace(
        config,
        rank=c.rank,
        n_basis=(c.n_basis,) * D,
        bases=bases,
        warps=(WARPS[c.warp],) * D,
        groups=GROUPS[c.prior_groups],
        additive=c.additive,
        rotate=c.rotate and D > 1,
        solver=config.solver or dense,
    )


def _distinct(candidates: Sequence[Candidate], given: dict[str, Any]) -> list[Candidate]:
    """Candidates with what the user has fixed, each once."""
    return list(dict.fromkeys(replace(c, **given) for c in candidates))


def _sample(table: RowSource | Pieces, size: int) -> Chunk:
    """About ``size`` rows, or all if there are not many more."""
    if isinstance(table, ArraySource) and table.n_rows <= size:
        return table.read(0, table.n_rows)
    largest = largest_hash(size, table.n_rows)

    def choose(chunk: Chunk) -> Chunk:
        chosen = hashes(chunk.first_row, chunk.n_rows) <= largest
        weight = chunk.weight
        if weight is not None:
            chosen &= weight > 0.0
            weight = weight[chosen]
        return Chunk(chunk.X[chosen], chunk.y[chosen], weight, chunk.first_row)

    def join(a: Chunk, b: Chunk) -> Chunk:
        weight = None if a.weight is None or b.weight is None else np.append(a.weight, b.weight)
        X, y = np.concatenate([a.X, b.X]), np.concatenate([a.y, b.y])
        return Chunk(X, y, weight, a.first_row)

    if not isinstance(table, RowSource):
        return table.reduce(choose, join)
    pieces = LocalPieces(table)
    try:
        return pieces.reduce(choose, join)
    finally:
        pieces.close()


def _source(
    sample: Chunk, rows: Any, names: tuple[str, ...], table: RowSource | Pieces
) -> ArraySource:
    weight = None if sample.weight is None else sample.weight[rows]
    missing = isinstance(table, RowSource) and table.missing
    return ArraySource(sample.X[rows], sample.y[rows], weight, names, missing=missing)
