"""Scores of predictions, and what they mean in words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlace import metrics
from tensorlace._types import Array
from tensorlace.cli.output import count, number
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.predictive.conformal import check_calibrated
from tensorlace.predictive.distributions import Distribution, Samples
from tensorlace.predictive.held_back import HeldBackTest

__all__ = ["held_back_scores", "score", "score_rows", "verdict"]

_KEPT = ("rmse", "r2", "nll", "crps", "level", "coverage", "width")
"""Scores that a model keeps of its test."""


def score(
    y: Array, dist: Distribution, level: float = 0.95, weight: Array | None = None
) -> dict[str, float]:
    """All scores of predictions of ``y`` (n,): those of `metrics`, and the share explained."""
    rmse = metrics.rmse(y, dist, sample_weight=weight)
    spread = float(np.sqrt(np.cov(y, aweights=weight, bias=True))) if len(y) > 1 else 0.0
    return {
        "rows": len(y),
        "rmse": rmse,
        "r2": 1.0 - (rmse / spread) ** 2 if spread > 0.0 else np.nan,
        "nll": np.nan if isinstance(dist, Samples) else metrics.nll(y, dist, sample_weight=weight),
        "crps": metrics.crps(y, dist, sample_weight=weight),
        "level": level,
        "coverage": metrics.coverage(y, dist, level, sample_weight=weight),
        "width": metrics.width(y, dist, level, sample_weight=weight),
        "rce": metrics.calibration_error(y, dist, sample_weight=weight),
    }


def held_back_scores(
    model: FittedModel, X: Any, y: Array, weight: Array | None = None
) -> tuple[dict[str, Any], HeldBackTest]:
    """Scores of a model on rows that were held back from its fit, and what it keeps of them."""
    dist, novelty = model.dist_and_novelty(model.encode(X))
    found = score(y, dist, weight=weight)
    several = np.count_nonzero(np.ones(len(y)) if weight is None else weight) > 1
    checked = check_calibrated(y, dist, weight, model.calibration) if several else None
    test = HeldBackTest(
        n_rows=len(y),
        n_unlike=int(novelty.unlike.sum()),
        **{key: float(found[key]) for key in _KEPT},
        contradicted=checked is not None and bool(checked.contradicted),
        message="" if checked is None else checked.message,
    )
    more = {"unlike": test.n_unlike, "contradicted": test.contradicted, "message": test.message}
    return {**found, **more}, test


def score_rows(scores: dict[str, float]) -> Sequence[tuple[str, str, str]]:
    """Name, value and meaning of each score."""
    level = f"{scores['level']:.0%}"
    return [
        ("RMSE", number(scores["rmse"]), "typical error, in units of the target"),
        ("R²", number(scores["r2"]), "share of the variance explained; 1 is best"),
        ("NLL", number(scores["nll"]), "negative log density per row; lower is better"),
        ("CRPS", number(scores["crps"]), "error of the whole distribution, in units of the target"),
        (f"coverage {level}", f"{scores['coverage']:.1%}", f"rows inside; {level} is best"),
        (f"width {level}", number(scores["width"]), "of the intervals; smaller is sharper"),
        ("RCE", number(scores["rce"]), "mean error of the coverage at 19 levels; 0 is best"),
    ]


def verdict(scores: dict[str, Any]) -> list[str]:
    """What the scores say, in plain words.

    >>> for line in verdict({"rows": 100, "r2": 0.96, "level": 0.95, "coverage": 0.8}):
    ...     print(line)
    Accuracy: very good, 96% of the variance is explained.
    Intervals: too narrow, 80.0% of the rows are inside and 95% should be.
    """
    lines = []
    r2, level, inside, n = (scores[k] for k in ("r2", "level", "coverage", "rows"))
    if np.isnan(r2):
        lines.append("Accuracy: cannot be told, the target does not vary.")
    elif r2 < 0.0:
        lines.append("Accuracy: poor, the mean of these rows would predict them better.")
    else:
        words = ((0.9, "very good"), (0.7, "good"), (0.4, "moderate"), (0.0, "weak"))
        word = next(word for least, word in words if r2 >= least)
        lines.append(f"Accuracy: {word}, {100 * r2:.0f}% of the variance is explained.")
    chance = 2.0 * np.sqrt(level * (1.0 - level) / n)
    told = f"{100 * inside:.1f}% of the rows are inside and {100 * level:g}% should be"
    if abs(inside - level) <= chance:
        lines.append(f"Intervals: honest as far as {count(n, 'row')} can tell, {told}.")
    else:
        lines.append(f"Intervals: too {'narrow' if inside < level else 'wide'}, {told}.")
    return lines
