"""Mixture weights of the candidates that were tried, from what they say of rows held out."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array, Mask
from tensorlace.machines.ensemble import blend
from tensorlace.search.cost_model import affordable_steps, cost
from tensorlace.search.noise_selection import Residuals, cross_scores
from tensorlace.search.settings import SearchSettings
from tensorlace.search.stacking import Unseen, greedy, mean_and_error, score_weights
from tensorlace.search.trials import Trial, Trials
from tensorlace.sources.sampling import fold_numbers

__all__ = [
    "affordable_members",
    "choice_folds",
    "chosen_trust",
    "enough_rows_for_row_weights",
    "mixture_weights",
    "n_picks",
    "plain_model",
]

Folds = npt.NDArray[np.intp]
"""Number of the fold of each row, (n,)."""

Indices = npt.NDArray[np.intp]


def choice_folds(trials: Trials, settings: SearchSettings) -> Folds | None:
    """Folds (n,) of the rows held out, in which weights and noise are judged.

    None if the rows are too few, or the same over and over.
    """
    y, _ = trials.targets
    if len(y) < settings.rows.least_to_choose:
        return None
    folds = fold_numbers(trials.sample.X[trials.held], y, settings.rows.n_folds)
    return folds if folds.any() else None


def affordable_members(
    trials: Trials,
    tried: Sequence[Trial],
    steps: Sequence[int],
    work: float,
    n_rows: int,
    settings: SearchSettings,
    *,
    fewest: int | None = None,
) -> tuple[Indices, list[int]]:
    """Those that the work pays for, best first; at least one.

    Parameters
    ----------
    trials : Trials
    tried : sequence of K Trial
    steps : sequence of K int
        Solver steps of the final fits.
    work : float
        Seconds of one thread.
    n_rows : int
        Rows of the final fits.
    settings : SearchSettings
    fewest : int, optional
        Solver steps that the best may be cut down to where the work pays for no more; if it does
        not pay for these, the cheapest has them. None leaves the best its steps at any cost.

    Returns
    -------
    positions : int array
        In ``tried``.
    steps : list of K int
        Those of the final fits.
    """
    y, weight = trials.targets
    steps = list(steps)
    score = np.average(Trials.unseen(tried).log_density(y), axis=1, weights=weight)
    kept: list[int] = []
    size = trials.width, n_rows, settings.cost
    for k in np.argsort(-score, kind="stable"):
        seconds = cost(tried[k].candidate, *size, steps[k])
        if fewest is not None and not kept and seconds > work:
            most = affordable_steps(tried[k].candidate, *size, work)
            if most < fewest:
                continue
            steps[k] = most
            seconds = work
        if not kept or seconds <= work:
            kept.append(int(k))
            work -= seconds
    if not kept:
        assert fewest is not None
        kept = [min(range(len(tried)), key=lambda k: cost(tried[k].candidate, *size, fewest))]
        steps[kept[0]] = fewest
    return np.array(kept), steps


def chosen_trust(
    trials: Trials, tried: Sequence[Trial], n_picks: int, folds: Folds, settings: SearchSettings
) -> tuple[float, Array]:
    """Share of the weights that picks get, by how mixtures do on folds they were not picked on.

    Parameters
    ----------
    trials : Trials
    tried : sequence of Trial
    n_picks : int
    folds : (n,) int array
    settings : SearchSettings

    Returns
    -------
    trust : float
        One of ``settings.weights.trusts``.
    scores : (n,) array
        Log scores with it of the rows held out.
    """
    y, weight = trials.targets
    unseen, trusts = Trials.unseen(tried), settings.weights.trusts
    X, scores = trials.sample.X[trials.held], np.zeros((len(trusts), len(y)))
    for k in np.unique(folds):
        held = folds == k
        some = unseen[:, ~held], y[~held], None if weight is None else weight[~held]
        picked, equal = _two_ways(*some, n_picks, settings)
        for t, trust in enumerate(trusts):
            dist = unseen.mixture(trust * picked + (1.0 - trust) * equal)
            residuals = Residuals(X, y, weight, dist)
            scores[t, held] = cross_scores(residuals[~held], residuals[held], settings.noise)
    best = int(np.argmax(np.average(scores, axis=1, weights=weight)))
    return trusts[best], scores[best]


def plain_model(
    trials: Trials, tried: Sequence[Trial], scores: Array, folds: Folds, settings: SearchSettings
) -> int | None:
    """Number of the constant or the straight line, if the mixture is not clearly better.

    A mixture pays for what its members might have found: where there is nothing else to find, the
    plain model alone is nearer to the truth.

    Parameters
    ----------
    trials : Trials
    tried : sequence of Trial
    scores : (n,) array
        Log scores of the mixture on folds that it was not made with.
    folds : (n,) int array
    settings : SearchSettings
    """
    y, weight = trials.targets
    plain = [k for k, t in enumerate(tried) if t.candidate.plain]
    for k in sorted(plain, key=lambda k: tried[k].candidate.n_basis):
        dist = Trials.unseen([tried[k]]).mixture(np.ones(1))
        residuals = Residuals(trials.sample.X[trials.held], y, weight, dist)
        gain = scores.copy()
        for fold in np.unique(folds):
            held = folds == fold
            gain[held] -= cross_scores(residuals[~held], residuals[held], settings.noise)
        mean, error = mean_and_error(gain, weight)
        if mean < error:
            return k
    return None


def mixture_weights(
    trials: Trials,
    tried: Sequence[Trial],
    allowed: Indices,
    trust: float,
    n_members: int,
    settings: SearchSettings,
    rows: Mask | None = None,
) -> Array:
    """Overall weights (K,): partly by picks for the mixture's sake, else by their own scores.

    Parameters
    ----------
    trials : Trials
    tried : sequence of K Trial
    allowed : int array
        Positions of those that may have a weight.
    trust : float
        Share of the weights that picks get if rows are many.
    n_members : int
        Most weights that are not zero.
    settings : SearchSettings
    rows : (n,) mask, optional
        Rows held out that may have a say; all by default.
    """
    y, weight = trials.targets
    count, unseen = trials.n_held, Trials.unseen(tried)
    if rows is not None:
        y, weight, unseen = y[rows], None if weight is None else weight[rows], unseen[:, rows]
        count = float(len(y) if weight is None else weight.sum())
    picked, equal = _two_ways(
        unseen[allowed], y, weight, n_picks(n_members, len(allowed), settings), settings
    )
    trust *= count / (count + settings.weights.trust_rows)  # few rows say little of which help
    w = np.zeros(len(tried))
    w[allowed] = trust * picked + (1.0 - trust) * equal
    share = blend(w[allowed], unseen[allowed].log_std).mean(axis=1)
    w[allowed[share < settings.weights.least_share]] = 0.0
    w[np.argsort(-w, kind="stable")[n_members:]] = 0.0
    w /= w.sum()
    constants = [k for k, t in enumerate(tried) if t.candidate.plain and not t.candidate.straight]
    if constants and n_members > 1 and not enough_rows_for_row_weights(trials, settings):
        # by the rule of succession: n rows do not show that others fail less often than that
        least = 1.0 / (count + 1.0)
        w *= 1.0 - least
        w[constants[0]] += least
    return np.asarray(w)


def n_picks(n_members: int, n_allowed: int, settings: SearchSettings) -> int:
    """Picks of the greedy choice: no more than members, where there are more to pick from."""
    most = settings.weights.n_picks
    return min(most, n_members) if n_members < n_allowed else most


def enough_rows_for_row_weights(trials: Trials, settings: SearchSettings) -> bool:
    """Whether weights may follow members' widths row by row: of few rows these are chance."""
    return trials.n_held >= settings.weights.row_weights_from


def _two_ways(
    unseen: Unseen, y: Array, weight: Array | None, picks: int, settings: SearchSettings
) -> tuple[Array, Array]:
    """Two weightings of K models, (K,) each: picks by `greedy`, and all by their scores."""
    picked = greedy(unseen, y, weight, picks)
    return picked / picked.sum(), score_weights(unseen, y, weight, settings.weights.score_rate)
