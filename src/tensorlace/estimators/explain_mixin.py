"""Effects of single columns and a summary, as an estimator gives them."""

from typing import Any

from tensorlace.estimators.fitted_attributes import HasFittedAttributes
from tensorlace.explain.effects import Effects, partial_effects
from tensorlace.explain.summary import Overview, overview

__all__ = ["Explains"]


class Explains(HasFittedAttributes):
    """Explanations of the fitted model."""

    def partial_effects(
        self,
        column: str | int,
        grid: Any = None,
        n_points: int = 50,
        coverage: float = 0.9,
        method: str = "accumulated",
    ) -> Effects:
        """Average prediction as one column varies, with a band that says how sure it is.

        Rows are moved no farther than to values that rows like them have: between neighbouring
        values of a number, predictions are compared in the rows that are there, and the differences
        accumulate (accumulated local effects; Apley & Zhu 2020). Categories are compared pair by
        pair, in rows of the one that are most like rows of the other. The average over rows is the
        average prediction, the curve ends where rows end, and the band comes from the linearised
        posterior of the average itself, whatever ``predictive`` is.

        Parameters
        ----------
        column : str or int
            Name or position of a column of the table.
        grid : array-like of shape (k,), optional
            Values as they stand in the table; by default quantiles of the training rows, or all
            categories that they have.
        n_points : int, default=50
            Most values of the default grid of numbers.
        coverage : float, default=0.9
            Probability of the band, for the average function at each value.
        method : {"accumulated", "alone"}, default="accumulated"
            "alone" gives all training rows the value in question and leaves their other columns as
            they are (partial dependence). Where columns are correlated, that asks for combinations
            that no row is near.

        Returns
        -------
        Effects
        """
        return partial_effects(self._predicting(), column, grid, n_points, coverage, method)

    def summary(self) -> Overview:
        """What was chosen and found, to be printed: a page of text for a terminal."""
        self._explained()
        return overview(self.fitted_model())
