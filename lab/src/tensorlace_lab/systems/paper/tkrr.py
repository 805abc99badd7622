"""T-KRR: tensor kernel ridge regression with Hilbert-space features."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np

from tensorlace.predictive.distributions import Normal
from tensorlace_lab.systems.parts.cp_machine import CoreLaplace, alternate, near_constant
from tensorlace_lab.systems.parts.kernel import most_likely
from tensorlace_lab.systems.parts.sine_features import MAX_LENGTHS, sine_features
from tensorlace_lab.systems.regressor import Array, Baseline, UnitBox

__all__ = ["TKRR"]


@final
class TKRR(Baseline):
    """Tensor kernel ridge regression (Wesel & Batselier 2021).

    Sine features of a squared-exponential kernel on [-1/2, 3/2], inputs brought to [0, 1], a CPD of
    the weights by alternating least squares with the ridge on the whole tensor. Length and ridge
    come from the marginal likelihood of the Gaussian process with that (isotropic) kernel; the
    length has a limit, as the features vanish half an interval from the data and do not add up to a
    kernel that reaches the walls. The original has no variance; here one core, that of highest
    evidence, has its exact posterior.

    Parameters
    ----------
    n_basis, rank : int
        Features per column, terms of the CPD.
    n_sweeps : int
        Passes over all cores, forth and back.
    max_lengths : sequence of float
        Limits of the length scale, in units of the range of a column. Of several, the one that is
        best on a tenth of the rows, held out.
    hyper_rows : int
        Rows that the marginal likelihood sees.
    random_state : int, RandomState or None
        Start of the cores; the rows for the marginal likelihood.

    Examples
    --------
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = TKRR(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 1e-2)
    True
    """

    def __init__(
        self,
        n_basis: int = 20,
        rank: int = 10,
        n_sweeps: int = 10,
        max_lengths: Sequence[float] = MAX_LENGTHS,
        hyper_rows: int = 500,
        random_state: Any = None,
    ) -> None:
        self.n_basis = n_basis
        self.rank = rank
        self.n_sweeps = n_sweeps
        self.max_lengths = max_lengths
        self.hyper_rows = hyper_rows
        self.random_state = random_state

    def _fit(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._choose(self.max_lengths, self._fit_limited, X, y, rng)

    def _fit_limited(self, max_length: float, X: Array, y: Array, rng: np.random.Generator) -> None:
        self._box = UnitBox.of(X)
        U = self._box(X)
        kernel = most_likely(U, y, rng, self.hyper_rows, ard=False)
        self.lengthscale_ = min(float(kernel.lengths[0]), max_length)
        features = sine_features(U, self.n_basis, self.lengthscale_)
        cores = near_constant(features, self.rank, rng)
        ridge = kernel.noise / kernel.signal
        cores = alternate(features, y, cores, max(ridge, 1e-9), self.n_sweeps)
        self._posterior = CoreLaplace.best(features, y, cores, kernel.noise)

    def _predict(self, X: Array) -> Normal:
        return self._posterior.predict(sine_features(self._box(X), self.n_basis, self.lengthscale_))
