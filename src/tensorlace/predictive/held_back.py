"""How a model did on rows that nothing was fitted to or chosen on."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

__all__ = ["HeldBackTest"]


@final
@dataclass(frozen=True)
class HeldBackTest:
    """Scores on rows that were held back before the fit; `str` gives the sentence.

    Attributes
    ----------
    n_rows, n_unlike : int
        Rows, and those of them that are unlike training rows.
    rmse, r2, nll, crps : float
        See `tensorlace.metrics`; ``r2`` is NaN if the target does not vary, ``nll`` where there is
        no density.
    level, coverage, width : float
        Nominal coverage of intervals, the share of targets inside, and their mean width.
    contradicted : bool
        Whether the targets contradict the distributions, see `tensorlace.predictive.checks`.
    message : str
        What they say, in one sentence; empty of a single row.
    """

    n_rows: int
    n_unlike: int
    rmse: float
    r2: float
    nll: float
    crps: float
    level: float
    coverage: float
    width: float
    contradicted: bool
    message: str

    @property
    def valid(self) -> bool:
        """Whether the numbers are such as can be."""
        shares = 0.0 < self.level < 1.0 and 0.0 <= self.coverage <= 1.0
        return 0 <= self.n_unlike <= self.n_rows > 0 and self.rmse >= 0.0 and shares

    @property
    def scores(self) -> str:
        """The scores in a line, with the coverage unless the message says it.

        >>> HeldBackTest(20, 0, 0.5, 0.91, np.nan, 0.3, 0.95, 0.9, 2.0, False, "").scores
        'RMSE 0.5, R² 0.91, CRPS 0.3, 90 % of targets in 95 % intervals'
        """
        known = {"RMSE": self.rmse, "R²": self.r2, "NLL": self.nll, "CRPS": self.crps}
        words = [f"{name} {value:.4g}" for name, value in known.items() if np.isfinite(value)]
        inside = f"{100 * self.coverage:.3g} % of targets in {100 * self.level:g} % intervals"
        told = f"{100 * self.level:g} % intervals hold" in self.message
        return ", ".join(words if told else [*words, inside])

    def __str__(self) -> str:
        some = f"{self.n_rows:,} row{'s' * (self.n_rows > 1)} held back for a test"
        return "; ".join(part for part in (some, self.message, self.scores) if part)

    def plain(self) -> dict[str, Any]:
        """Plain data, with None for what is no finite number."""
        return {k: _finite(v) for k, v in vars(self).items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
