"""Effects of single columns and a summary, as an estimator gives them."""

from typing import Any

from tensorlace.estimators.fitted_attributes import HasFittedAttributes
from tensorlace.explain.effects import Effects, partial_effects
from tensorlace.explain.summary import Overview, overview

__all__ = ["Explains"]


class Explains(HasFittedAttributes):
    """Explanations of the fitted model."""

    def partial_effects(
        self, column: str | int, grid: Any = None, n_points: int = 50, coverage: float = 0.9
    ) -> Effects:
        """Average prediction as one column varies, with a band that says how sure it is.

        The average is over training rows (4096 at most), each given the value in question. The band
        comes from the linearised posterior of the average itself, whatever ``predictive`` is.

        Parameters
        ----------
        column : str or int
            Name or position of a column of the table.
        grid : array-like of shape (k,), optional
            Values as they stand in the table; by default the range of the column, or all
            categories.
        n_points : int, default=50
            Values of the default grid.
        coverage : float, default=0.9
            Probability of the band, for the average function at each value.

        Returns
        -------
        Effects
        """
        return partial_effects(self._predicting(), column, grid, n_points, coverage)

    def summary(self) -> Overview:
        """What was chosen and found, to be printed: a page of text for a terminal."""
        self._explained()
        return overview(self.fitted_model())
