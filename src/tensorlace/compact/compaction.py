"""Smaller models: fewer members, fewer directions of their posteriors, fewer knots of their warps.

Most numbers of a fitted model are the matrices of its posteriors. What can go with the least harm
to predictions of training rows goes first, see `posterior_directions` and `knots`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.compact.knots import quantile_of, thinned
from tensorlace.compact.posterior_directions import Directions, widths_of
from tensorlace.errors import InputError
from tensorlace.explain.relevance import relevance_of
from tensorlace.laplace.posterior import Diagonal
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.machines.machine import KernelMachine
from tensorlace.predictive.distributions import Distribution

__all__ = ["Deviation", "compact", "deviation", "n_bytes"]

M = TypeVar("M", FittedModel, HoldsModel)

_ROWS = 256
"""Reference rows on which deviations are measured."""

_FEWER = 0.7
"""Factor from one number of members to the next that is tried."""

_KNOT_SHARE, _KNOT_BYTES = 0.15, 16
"""Share of all bytes that knots of warps may take, and bytes of a knot and its height."""


@final
@dataclass(frozen=True)
class Deviation:
    """How far predictions of one model are from those of another.

    Attributes
    ----------
    mean, largest_mean : float
        Typical (median) and largest difference of the means over the rows, in standard deviations.
    std, largest_std : float
        Typical and largest relative difference of the standard deviations.
    """

    mean: float
    largest_mean: float
    std: float
    largest_std: float


def deviation(found: Distribution, right: Distribution) -> Deviation:
    """How far ``found`` is from ``right``, distributions of the same rows.

    >>> from tensorlace import Normal
    >>> deviation(Normal([1.0], 0.0, 2.5), Normal([0.0], 0.0, 2.0))
    Deviation(mean=0.5, largest_mean=0.5, std=0.25, largest_std=0.25)
    """
    mean = np.abs(found.mean - right.mean) / right.std
    std = np.abs(found.std / right.std - 1.0)
    return Deviation(*(float(f(x)) for x in (mean, std) for f in (np.median, np.max)))


def n_bytes(model: FittedModel | HoldsModel) -> int:
    """Bytes of the arrays that predictions of a fitted model need, equal ones counted once.

    A number takes 8, an entry of a posterior that `compact` made 1 to 3.
    """
    return _n_bytes(holder(model).fitted_model().ensemble)


def _n_bytes(ensemble: Ensemble) -> int:
    sizes: dict[bytes, int] = {}
    noise = ensemble.noise
    networks = [*ensemble.machines, *(noise.machines if noise.strength > 0.0 else ())]
    arrays = [array for machine in networks for array in _network_arrays(machine)]
    for machine in ensemble.machines:
        arrays += machine.fit.posterior.arrays()
    for array in arrays:
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).digest()
        widths = widths_of(array) if array.ndim == 2 else None
        sizes[digest] = 8 * array.size if widths is None else len(array) * int(widths.sum())
    return sum(sizes.values())


def _network_arrays(machine: KernelMachine) -> Iterator[Array]:
    yield from machine.fit.cores
    for column in machine.columns.columns:
        warp = quantile_of(column.warp)
        if warp is not None:
            yield from (warp.knots, warp.heights)


def compact(model: M, max_bytes: int = 1 << 20) -> M:
    """A fitted model whose predictions need at most ``max_bytes``, close to those of ``model``.

    Of an estimator it is an estimator like any other, to be saved, compared (`deviation`) and
    predicted with. Of the members the heaviest stay, so many as bring it closest to ``model`` on
    training rows, and their weights sum to 1 again. The variance of a member does not fall, but for
    rounding. It explains itself with 256 of the training rows.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
        It is not changed, and returned itself if it is small enough.
    max_bytes : int
        See `n_bytes`. A model file keeps all digits of every number, and is larger.

    Raises
    ------
    InputError
        If even one member without any direction of its posterior is too large.

    Examples
    --------
    >>> from tensorlace import TNKMRegressor
    >>> X = np.random.default_rng(0).uniform(size=(80, 2))
    >>> model = TNKMRegressor(rank=6, n_basis=8, random_state=0).fit(X, np.sin(9 * X[:, 0]))
    >>> small = compact(model, 20_000)
    >>> n_bytes(model) // 1000, n_bytes(small) <= 20_000
    (25, True)
    >>> deviation(small.predict_dist(X), model.predict_dist(X)).largest_std < 0.01
    True
    """
    if isinstance(model, FittedModel):
        return _compacted(model, max_bytes)
    full = holder(model).fitted_model()
    small = _compacted(full, max_bytes)
    return model if small is full else model.with_model(small)


def _compacted(model: FittedModel, max_bytes: int) -> FittedModel:
    full = model.ensemble
    if _n_bytes(full) <= max_bytes:
        return model
    known = model.reference_rows
    X = known.X[:_ROWS]
    right = full.dist(X)
    order = np.argsort(-full.weights, kind="stable")
    order = order[full.weights[order] > 0.0]
    directions: dict[int, Directions] = {}
    best, least = None, np.inf
    members = len(order)
    while members:
        found = _with_members(full, np.sort(order[:members]), max_bytes, X, directions)
        if found is not None:
            dist = found.dist(X)
            gap = ((dist.mean - right.mean) / right.std) ** 2 + np.log(dist.std / right.std) ** 2
            if gap.mean() < least:
                best, least = found, gap.mean()
        members = min(members - 1, round(_FEWER * members))
    if best is None:
        raise InputError(f"max_bytes={max_bytes} is too little for one member: give more")
    small = replace(model, ensemble=best, rows=known.part(_ROWS))
    return small.with_relevance(relevance_of(model))


def _with_members(
    ensemble: Ensemble,
    chosen: npt.NDArray[np.intp],
    max_bytes: int,
    X: Array,
    directions: dict[int, Directions],
) -> Ensemble | None:
    """Some members with as many posterior directions as there is room for, or None."""
    machines = [ensemble.machines[k] for k in chosen]
    noises = [_certain(machine) for machine in ensemble.noise.machines]
    thin = thinned([*machines, *noises], int(_KNOT_SHARE * max_bytes) // _KNOT_BYTES)
    weights = ensemble.weights[chosen] / ensemble.weights[chosen].sum()
    few = replace(
        ensemble,
        machines=tuple(map(_certain, thin[: len(machines)])),
        weights=weights,
        noise=ensemble.noise.with_machines(tuple(thin[len(machines) :])),
    )
    # certain weights take a number each, as many as the scales of the priors will
    room = max_bytes - _n_bytes(few) - sum(8 * m.fit.posterior.n_weights for m in machines)
    if room < 0:
        return None
    for k, machine in zip(chosen, machines, strict=True):
        if k not in directions:
            directions[k] = Directions.of(machine, X)
    mine = [directions[k] for k in chosen]
    gains = np.concatenate([w * d.gains for w, d in zip(weights, mine, strict=True)])
    costs = np.concatenate([d.costs for d in mine])
    ranked = np.argsort(-gains / costs, kind="stable")
    kept = np.zeros(len(gains), dtype=np.bool_)
    kept[ranked[np.cumsum(costs[ranked]) <= room]] = True
    masks = np.split(kept, np.cumsum([len(d.gains) for d in mine])[:-1])
    kept_machines = tuple(
        replace(machine, fit=replace(machine.fit, posterior=d.kept(mask)))
        for machine, d, mask in zip(thin, mine, masks, strict=False)
    )
    return replace(few, machines=kept_machines)


def _certain(machine: KernelMachine) -> KernelMachine:
    """The machine without its posterior, which its mean does not need."""
    size = machine.fit.posterior.n_weights
    return replace(machine, fit=replace(machine.fit, posterior=Diagonal(np.zeros(size), size)))
