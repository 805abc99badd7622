"""Which of the candidates tried become members of the mixture, and how much each counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from tensorlace._types import Array
from tensorlace.machines.ensemble import blend
from tensorlace.machines.fitted import Fitted
from tensorlace.search.candidate import Candidate, Width
from tensorlace.search.cost_model import FINAL_STEPS, STEPS, cost
from tensorlace.search.noise_selection import Residuals, crossed
from tensorlace.search.plan import CHOOSE_FROM
from tensorlace.search.schedule import Task
from tensorlace.search.stacking import Unseen, shares
from tensorlace.search.trials import Trial, Trials
from tensorlace.sources.sampling import fold_numbers

__all__ = ["FOLDS", "Member", "sure_of_themselves", "weigh"]

Folds = npt.NDArray[np.intp]
"""Number of the fold of each row, (n,)."""

FOLDS, PICKS = 5, 20
MEMBERS, FEW_MEMBERS = 30, 8
"""Most members: of small models on few rows, of large ones on many."""

_SHARP_FROM = 20
"""Rows from which members count by how sure they are of a row: with fewer they are so by chance."""

_LEAST_SHARE = 0.004
"""A member that counts less than this on average over rows is left out."""

_TRUSTS = (0.2, 0.5, 0.8)
"""Shares of the weights that may be picked for the mixture's sake; of few models, the second."""

_MOST_LONGER = 3
"""Times that the final steps are repeated where longer fits were better."""


@final
@dataclass(frozen=True, eq=False)
class Member:
    """What is to be fitted to all rows: from nothing, or from where a trial ended."""

    candidate: Candidate
    seed: int
    begin: Fitted | None = None
    steps: int = STEPS
    bends: bool = False

    @classmethod
    def after(cls, trial: Trial) -> Self:
        """Go on from a trial, for longer if that paid with part of the rows."""
        steps = FINAL_STEPS * (1 + min(trial.longer, _MOST_LONGER))
        return cls(trial.candidate, trial.seed, trial.fits[0], steps, bends=trial.longer > 0)


def weigh(
    task: Task, trials: Trials, tried: Sequence[Trial], few: bool, n_rows: int, width: Width
) -> Array:
    """Overall weights (K,) of all that were tried; where rows are many, few are not zero."""
    y, weight = trials.targets
    unseen = Trials.unseen(tried)
    most = task.n_members or (MEMBERS if few else FEW_MEMBERS)
    # a line without products stands alone, or not at all
    allowed = np.flatnonzero([t.candidate.rank > 0 for t in tried])
    if not few:
        score = np.average(unseen.log_density(y), axis=1, weights=weight)
        order = np.argsort(-score, kind="stable")
        work = 0.4 * task.budget * task.threads
        kept: list[int] = []
        for k in order:
            seconds = cost(tried[k].candidate, width, n_rows, Member.after(tried[k]).steps)
            if not kept or seconds <= work:
                kept.append(int(k))
                work -= seconds
        allowed = np.array(kept)
    n_picks = min(PICKS, most) if most < len(allowed) else PICKS
    picked, equal = shares(unseen[allowed], y, weight, n_picks)
    trust = _TRUSTS[1]
    folds = _folds(trials) if few else None
    if folds is not None:
        trust, scores = _trust(trials, unseen[allowed], n_picks, folds)
        plain = _plain(trials, tried, scores, folds)
        if plain is not None:
            return np.asarray(np.arange(len(tried)) == plain, dtype=np.float64)
    # few rows say little of which members help
    count = len(y) if weight is None else float(weight.sum())
    trust *= count / (count + 50.0)
    w = np.zeros(len(tried))
    w[allowed] = trust * picked + (1.0 - trust) * equal
    share = blend(w[allowed], unseen[allowed].log_std).mean(axis=1)
    w[allowed[share < _LEAST_SHARE]] = 0.0
    w[np.argsort(-w, kind="stable")[most:]] = 0.0
    w /= w.sum()
    constants = [k for k, t in enumerate(tried) if t.candidate.plain and not t.candidate.straight]
    if constants and most > 1 and not sure_of_themselves(trials):
        # by the rule of succession: n rows do not show that others fail less often than that
        least = 1.0 / (count + 1.0)
        w *= 1.0 - least
        w[constants[0]] += least
    return np.asarray(w)


def sure_of_themselves(trials: Trials) -> bool:
    """Whether there are rows enough to believe members that are sure of a row more than others."""
    y, weight = trials.targets
    return float(len(y) if weight is None else weight.sum()) >= _SHARP_FROM


def _trust(trials: Trials, unseen: Unseen, n_picks: int, folds: Folds) -> tuple[float, Array]:
    """Share of the weights to be picked, by how mixtures do on rows they were not picked on.

    The log scores (n,) of the best there as well.
    """
    y, weight = trials.targets
    X, scores = trials.sample.X[trials.held], np.zeros((len(_TRUSTS), len(y)))
    for k in np.unique(folds):
        held = folds == k
        some = unseen[:, ~held], y[~held], None if weight is None else weight[~held]
        picked, equal = shares(*some, n_picks)
        for t, trust in enumerate(_TRUSTS):
            dist = unseen.mixture(trust * picked + (1.0 - trust) * equal)
            residuals = Residuals(X, y, weight, dist)
            scores[t, held] = crossed(residuals[~held], residuals[held])
    best = int(np.argmax(np.average(scores, axis=1, weights=weight)))
    return _TRUSTS[best], scores[best]


def _plain(trials: Trials, tried: Sequence[Trial], scores: Array, folds: Folds) -> int | None:
    """Number of the constant or the straight line, if the mixture is not clearly better.

    A mixture pays for what its members might have found: where there is nothing else to find, the
    plain model alone is nearer to the truth.
    """
    y, weight = trials.targets
    count = float(len(y) if weight is None else weight.sum())
    candidates = [k for k, t in enumerate(tried) if t.candidate.plain]
    for k in sorted(candidates, key=lambda k: tried[k].candidate.n_basis):
        dist = Trials.unseen([tried[k]]).mixture(np.ones(1))
        residuals = Residuals(trials.sample.X[trials.held], y, weight, dist)
        gain = scores.copy()
        for fold in np.unique(folds):
            held = folds == fold
            gain[held] -= crossed(residuals[~held], residuals[held])
        mean = np.average(gain, weights=weight)
        error = np.sqrt(np.average((gain - mean) ** 2, weights=weight) / count)
        if mean < error:
            return k
    return None


def _folds(trials: Trials) -> Folds | None:
    """Folds (n,) of the rows held out; None if they are too few, or the same over and over."""
    y, _ = trials.targets
    if len(y) < CHOOSE_FROM:
        return None
    folds = fold_numbers(trials.sample.X[trials.held], y, FOLDS)
    return folds if folds.any() else None
