"""Is a difference more than chance: paired tests over splits, ranks over sets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import stats

from tensorlace._types import Array
from tensorlace.errors import InputError

__all__ = ["Ranking", "contenders", "mean_and_error", "paired_p", "ranking"]

TEST_SHARE = 1.0 / 9.0
"""Test rows per training row of a nine-to-one split."""


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error (NaN of a single value).

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    x = np.asarray(values, dtype=float)
    error = float(x.std(ddof=1) / math.sqrt(len(x))) if len(x) > 1 else math.nan
    return float(x.mean()), error


def paired_p(differences: Sequence[float], test_share: float = TEST_SHARE) -> float:
    """Two-sided p-value of a mean difference of zero over random splits.

    The training sets of random splits overlap, so the plain paired t-test is too sure of itself;
    Nadeau & Bengio (2003) replace the variance factor 1/J by 1/J + n_test/n_train. One split or
    none says nothing: 1.

    >>> paired_p([0.0, 0.0, 0.0])
    1.0
    >>> paired_p([1.0, 1.1, 0.9, 1.0, 1.05]) < 0.001
    True
    """
    d = np.asarray(differences, dtype=float)
    if len(d) < 2:
        return 1.0
    spread = float(d.var(ddof=1)) * (1.0 / len(d) + test_share)
    if spread == 0.0:
        return 1.0 if d[0] == 0.0 else 0.0
    t = float(d.mean()) / math.sqrt(spread)
    return float(2.0 * stats.t.sf(abs(t), len(d) - 1))


def contenders(
    scores: Mapping[str, Mapping[int, float]], level: float = 0.05
) -> tuple[str, set[str]]:
    """The system of the lowest mean, and all that are not significantly worse on splits they share.

    Parameters
    ----------
    scores : mapping
        System to (split to score), lower is better. Pairs are made of the splits two systems share.
    level : float
        Below this p-value a system is worse.
    """
    best = min(scores, key=lambda name: float(np.mean(list(scores[name].values()))))
    good = {best}
    for name, of_split in scores.items():
        common = sorted(set(of_split) & set(scores[best]))
        p = paired_p([of_split[s] - scores[best][s] for s in common])
        if name != best and len(common) > 1 and p >= level:
            good.add(name)
    return best, good


@final
@dataclass(frozen=True)
class Ranking:
    """Mean ranks of systems over sets, and what difference of them means something.

    Attributes
    ----------
    systems : tuple of str
        Best first.
    ranks : tuple of float
    n_sets : int
    p : float
        Friedman's test that all are alike.
    critical : float
        Nemenyi's critical difference at 5 %.
    """

    systems: tuple[str, ...]
    ranks: tuple[float, ...]
    n_sets: int
    p: float
    critical: float


def ranking(systems: Sequence[str], scores: Array) -> Ranking:
    """Rank systems by scores (sets, systems), lower is better (Demšar 2006).

    >>> import numpy as np
    >>> found = ranking(["a", "b", "c"], np.array([[1, 2, 3], [1, 3, 2], [1, 2, 3.0]]))
    >>> found.systems, [round(r, 2) for r in found.ranks]
    (('a', 'b', 'c'), [1.0, 2.33, 2.67])
    """
    n, k = scores.shape
    if n < 2 or k < 2 or k != len(systems):
        raise InputError(f"ranks need two sets and two systems at least, got {n} and {k}")
    ranks = stats.rankdata(scores, axis=1).mean(axis=0)
    # for two systems Friedman's test is the sign test's big brother; the formula holds for any k
    ties = sum(
        float(np.sum(c**3 - c)) for c in (np.unique(r, return_counts=True)[1] for r in scores)
    )
    chi2 = 12.0 * n / (k * (k + 1)) * float(np.sum((ranks - (k + 1) / 2) ** 2))
    chi2 /= 1.0 - ties / (n * (k**3 - k)) or math.inf
    q = float(stats.studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2.0)
    order = np.argsort(ranks, kind="stable")
    return Ranking(
        systems=tuple(systems[j] for j in order),
        ranks=tuple(float(ranks[j]) for j in order),
        n_sets=n,
        p=float(stats.chi2.sf(chi2, k - 1)),
        critical=q * math.sqrt(k * (k + 1) / (6.0 * n)),
    )
