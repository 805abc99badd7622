"""Eigenvalues of the posterior precision: what the rows say, direction by direction."""

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from tensorlace._types import Array
from tensorlace.displays.canvas import COLORS, RED, axes, finish
from tensorlace.laplace.posterior import Posterior
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder

__all__ = ["SpectrumDisplay", "eigenvalues"]


def eigenvalues(posterior: Posterior) -> Array:
    """Eigenvalues (k,) of the precision ``H = Σ⁻¹``, falling; those truncated are not among them.

    They are the inverse squared singular values of a root of ``Σ``, which loses no digits of the
    small ones.

    >>> from tensorlace.laplace.posterior import Diagonal
    >>> eigenvalues(Diagonal(np.array([0.5, 0.0, 0.01]), n_dropped=1))
    array([100.,   2.])
    """
    return posterior.spectrum()


@final
class SpectrumDisplay:
    """Spectra of the posterior precision of each machine, and the threshold t̂.

    Precisions are those of the weights for a target of unit variance. A direction far above the
    prior precision is known from the rows; flat ends are directions the rows say nothing about.

    Parameters
    ----------
    spectra : sequence of arrays
        Eigenvalues kept, one array per machine.
    n_dropped : sequence of int
        Directions that truncation took out of each; their eigenvalues are not known any more.
    threshold : float or None
        The t̂ to draw, in units of the eigenvalues, or relative to the largest.
    relative : bool

    Attributes
    ----------
    n_below_ : list of int
        Directions of each machine that are dropped, or would be with this threshold.
    ax_, figure_ : matplotlib axes and figure
    """

    def __init__(
        self,
        spectra: Sequence[Array],
        n_dropped: Sequence[int],
        *,
        threshold: float | None = None,
        relative: bool = False,
    ) -> None:
        self.spectra, self.n_dropped = list(spectra), list(n_dropped)
        self.threshold, self.relative = threshold, relative
        cuts = [self._cut(spectrum) for spectrum in self.spectra]
        self.n_below_ = [
            int(dropped + (0 if cut is None else np.sum(spectrum < cut)))
            for spectrum, dropped, cut in zip(self.spectra, self.n_dropped, cuts, strict=True)
        ]
        self.ax_: Any = None
        self.figure_: Any = None

    @classmethod
    def from_estimator(
        cls,
        estimator: FittedModel | HoldsModel,
        *,
        threshold: float | None = None,
        relative: bool | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the spectra of a fitted model.

        ``threshold`` and ``relative`` are its own unless given: with a model that was fitted
        without a threshold, this shows what one would drop.
        """
        model = holder(estimator).fitted_model()
        arguments = model.record.arguments
        if threshold is None:
            threshold = arguments.get("threshold")
        if relative is None:
            relative = bool(arguments.get("relative_threshold"))
        posteriors = [machine.fit.posterior for machine in model.machines]
        display = cls(
            [eigenvalues(posterior) for posterior in posteriors],
            [posterior.n_dropped for posterior in posteriors],
            threshold=threshold,
            relative=relative,
        )
        return display.plot(ax, **options)

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw on the given or on new axes; ``options`` are for the lines."""
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        many = len(self.spectra) > len(COLORS)
        for k, (spectrum, below) in enumerate(zip(self.spectra, self.n_below_, strict=True)):
            total = len(spectrum) + self.n_dropped[k]
            label = f"{f'machine {k + 1}: ' if len(self.spectra) > 1 else ''}{total} directions"
            if below:
                label += f", {below} dropped"
            look = {
                "color": COLORS[0] if many else COLORS[k],
                "alpha": 0.5 if many else 1.0,
                "linewidth": 1.5,
                "marker": "." if total < 200 else None,
                "label": label if not many else None,
            }
            ax.plot(np.arange(1, len(spectrum) + 1), spectrum, **{**look, **options})
            if self.n_dropped[k]:
                span = len(spectrum) + 0.5, total + 0.5
                ax.axvspan(*span, color=look["color"], alpha=0.12 / len(self.spectra), linewidth=0)
        cuts = {cut for spectrum in self.spectra if (cut := self._cut(spectrum)) is not None}
        for number, cut in enumerate(sorted(cuts)):
            label = f"threshold $\\hat t$ = {self.threshold:.3g}{' λ₁' if self.relative else ''}"
            style = {"color": RED, "linewidth": 1.2, "linestyle": "--"}
            ax.axhline(cut, **style, label=None if number else label)
        ax.set_yscale("log")
        ax.set(xlabel="direction", ylabel="eigenvalue of the posterior precision")
        dropped = sum(self.n_below_)
        total = sum(map(len, self.spectra)) + sum(self.n_dropped)
        title = f"{len(self.spectra)} machines, {dropped} of {total} directions dropped"
        finish(ax, title if many else None, legend=not many or bool(cuts))
        return self

    def _cut(self, spectrum: Array) -> float | None:
        if self.threshold is None or not len(spectrum):
            return None
        return self.threshold * (float(spectrum[0]) if self.relative else 1.0)
