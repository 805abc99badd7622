"""Smaller models: fewer members, fewer directions of their posteriors, fewer knots of their warps.

Most numbers of a fitted model are the matrices of its posteriors. What can go with the least harm
to predictions of training rows goes first, see `directions` and `thinning`.
"""

import hashlib
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.compact.knots import quantile_of, thinned
from tensorlace.compact.posterior_directions import Directions, widths_of
from tensorlace.errors import InputError
from tensorlace.estimators.explain_mixin import training_rows
from tensorlace.laplace.posterior import Blocks, Diagonal, LowRank, Posterior, Root
from tensorlace.machines.machine import KernelMachine
from tensorlace.predictive.distributions import Distribution

__all__ = ["Deviation", "compact", "deviation", "n_bytes"]

_ROWS = 256
"""Training rows that say what matters."""

_FEWER = 0.7
"""Share of the members that are tried next."""

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


def n_bytes(model: Any) -> int:
    """Bytes of the arrays that predictions of a fitted estimator need, equal ones counted once.

    A number takes 8, an entry of a posterior that `compact` made 1 to 3.
    """
    sizes: dict[bytes, int] = {}
    noise = model.noise_
    networks = [*model.machines_, *(noise.machines if noise.strength > 0.0 else ())]
    arrays = [array for machine in networks for array in _network_arrays(machine)]
    for machine in model.machines_:
        arrays += _posterior_arrays(machine.fit.posterior)
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


def _posterior_arrays(posterior: Posterior) -> Iterator[Array]:
    if isinstance(posterior, Blocks):
        for part in posterior.parts:
            yield from _posterior_arrays(part)
    elif isinstance(posterior, Root):
        yield posterior.W
    elif isinstance(posterior, LowRank):
        yield from (posterior.U, posterior.scale, posterior.c)
    elif isinstance(posterior, Diagonal):
        yield posterior.variance


def compact(model: Any, max_bytes: int = 1 << 20) -> Any:
    """A fitted estimator whose predictions need at most ``max_bytes``, close to those of ``model``.

    It is an estimator like any other, to be saved, compared (`deviation`) and predicted with. Of
    the members the heaviest stay, so many as bring it closest to ``model`` on training rows, and
    their weights sum to 1 again. The variance of a member does not fall, but for rounding. It
    explains itself with 256 of the training rows.

    Parameters
    ----------
    model : TNKMRegressor
        Fitted. It is not changed, and returned itself if it is small enough.
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
    if n_bytes(model) <= max_bytes:
        return model
    known = training_rows(model)
    X = known.X[:_ROWS]
    right = model._ensemble.dist(X)
    order = np.argsort(-model.weights_, kind="stable")
    order = order[model.weights_[order] > 0.0]
    directions: dict[int, Directions] = {}
    best, least = None, np.inf
    members = len(order)
    while members:
        found = _with_members(model, np.sort(order[:members]), max_bytes, X, directions)
        if found is not None:
            dist = found._ensemble.dist(X)
            gap = ((dist.mean - right.mean) / right.std) ** 2 + np.log(dist.std / right.std) ** 2
            if gap.mean() < least:
                best, least = found, gap.mean()
        members = min(members - 1, round(_FEWER * members))
    if best is None:
        raise InputError(f"max_bytes={max_bytes} is too little for one member: give more")
    best._relevance = model.relevance_
    best._background = known.part(_ROWS)
    return best


def _with_members(
    model: Any,
    chosen: npt.NDArray[np.intp],
    max_bytes: int,
    X: Array,
    directions: dict[int, Directions],
) -> Any:
    """The model with some members and as many directions as there is room for, or None."""
    machines = [model.machines_[k] for k in chosen]
    noises = [_certain(machine) for machine in model.noise_.machines]
    thin = thinned([*machines, *noises], int(_KNOT_SHARE * max_bytes) // _KNOT_BYTES)
    few = copy(model)
    few.weights_ = model.weights_[chosen] / model.weights_[chosen].sum()
    few.noise_ = replace(model.noise_, machines=tuple(thin[len(machines) :]))
    few.machines_ = tuple(map(_certain, thin[: len(machines)]))
    # certain weights take a number each, as many as the scales of the priors will
    room = max_bytes - n_bytes(few) - sum(8 * m.fit.posterior.n_weights for m in machines)
    if room < 0:
        return None
    for k, machine in zip(chosen, machines, strict=True):
        if k not in directions:
            directions[k] = Directions.of(machine, X)
    mine = [directions[k] for k in chosen]
    gains = np.concatenate([w * d.gains for w, d in zip(few.weights_, mine, strict=True)])
    costs = np.concatenate([d.costs for d in mine])
    ranked = np.argsort(-gains / costs, kind="stable")
    kept = np.zeros(len(gains), dtype=np.bool_)
    kept[ranked[np.cumsum(costs[ranked]) <= room]] = True
    masks = np.split(kept, np.cumsum([len(d.gains) for d in mine])[:-1])
    few.machines_ = tuple(
        replace(machine, fit=replace(machine.fit, posterior=d.kept(mask)))
        for machine, d, mask in zip(thin, mine, masks, strict=False)
    )
    return few


def _certain(machine: KernelMachine) -> KernelMachine:
    """The machine without its posterior, which its mean does not need."""
    size = machine.fit.posterior.n_weights
    return replace(machine, fit=replace(machine.fit, posterior=Diagonal(np.zeros(size), size)))
