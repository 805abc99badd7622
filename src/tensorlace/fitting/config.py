"""The one place where strings become objects."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar, final

import numpy as np

from tensorlace.columns import warps
from tensorlace.columns.bases.basis import Basis
from tensorlace.errors import InputError
from tensorlace.fitting.memory_check import check_size
from tensorlace.fitting.registry import (
    BASES,
    ENGINES,
    GROUPS,
    LIKELIHOODS,
    NETWORKS,
    SOLVERS,
    WARPS,
    curvature_named,
    policy_named,
)
from tensorlace.fitting.settings import Settings
from tensorlace.kinds import Kind
from tensorlace.laplace.curvature import Curvature
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Fixed, Policy
from tensorlace.laplace.prior_groups import (
    Groups,
)
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cpd import CPD
from tensorlace.networks.engine import Engine
from tensorlace.networks.network import Network
from tensorlace.rows.stages import stages
from tensorlace.solvers.als import ALS
from tensorlace.solvers.solver import Solver

__all__ = ["PLAIN", "Config", "spread"]

T = TypeVar("T")


V = TypeVar("V")


PLAIN: Mapping[str, Any] = {
    "rank": 4,
    "n_basis": 6,
    "warp": "mixed",
    "prior_groups": "all",
    "additive": False,
    "rotate": False,
}
"""Values of arguments that are "auto" when ``rank`` is not."""


_GAUSS_NEWTON_WORK, _GAUSS_NEWTON_SIZE = 2e10, 3000
"""Multiplications per dense step, and size of its system, up to which `solver="auto"` goes for a
small gradient; beyond, for the sweeps of ALS, which come within a percent first."""


_MATRIX_FREE_ROWS = 5_000
"""Rows from which the former is the matrix-free solver instead of dense Gauss-Newton: with 8,000
rows or more it ends lower in a fraction of the time (`lab/results/passes`). With fewer, a
dense step is cheap and where it ends is as often the better place."""


_GROW_FROM_ROWS, _GROW_FROM_TIMES = 50_000, 8
"""Rows, also in units of the first stage, from which `grow_rows="auto"` begins on a part."""


def spread(
    name: str, value: T | Sequence[T], kinds: Mapping[T, V] | None, n_columns: int
) -> tuple[V, ...]:
    """One value for all columns or one per column, looked up in ``kinds`` if given."""
    one = isinstance(value, (str, int, np.integer))
    values: Iterable[T] = [value] * n_columns if one else value  # type: ignore[list-item, assignment]
    values = tuple(values)
    if len(values) != n_columns:
        raise InputError(
            f"{name} has {len(values)} entries but X has {n_columns} columns: "
            f"give one value for all columns or one per column"
        )
    if kinds is None:
        if not all(isinstance(v, (int, np.integer)) and v >= 1 for v in values):
            raise InputError(f"{name} must be whole numbers of at least 1, got {list(values)}")
        return values  # type: ignore[return-value]
    for v in values:
        if v not in kinds:
            raise InputError(f"{name} {v!r} is not known: choose from {', '.join(map(str, kinds))}")
    return tuple(kinds[v] for v in values)


@final
@dataclass(frozen=True)
class Config:
    """Everything that decides a fit, as objects: the seam below the estimator.

    Attributes
    ----------
    rank : int
    n_basis, bases, warps : one entry per column
        For columns of numbers.
    solver : Solver or None
        None: choose by the number of rows and the work of a Gauss-Newton step.
    curvature, truncation, groups, max_steps, tol
        As in `inference.Settings`.
    noise, prior : Policy
        A fixed noise precision is in units of y.
    kinds : tuple of Kind, optional
        What the columns are; numbers by default.
    network : type of ColumnNetwork
        What the columns' functions are combined by.
    likelihood : Likelihood
        How targets scatter about the response.
    rough : bool
        For fits that are only compared: precision updates may lose half their digits.
    """

    rank: int
    n_basis: tuple[int, ...]
    bases: tuple[Callable[[int], Basis], ...]
    warps: tuple[type[warps.Warp], ...]
    solver: Solver | None
    curvature: Curvature
    truncation: Truncation
    noise: Policy
    prior: Policy
    groups: Callable[[Network], Groups]
    max_steps: int
    tol: float
    row_dtype: str
    engine: Engine
    grow_rows: bool | None
    additive: bool = False
    rotate: bool = False
    kinds: tuple[Kind, ...] | None = None
    rough: bool = False
    network: type[ColumnNetwork] = CPD
    likelihood: Likelihood = GAUSSIAN

    @classmethod
    def of(
        cls, params: Mapping[str, Any], n_columns: int, kinds: tuple[Kind, ...] | None = None
    ) -> Self:
        """Turn the estimator's arguments into objects for a table of ``n_columns``.

        What is left to the data has a sensible fixed value here; see `search` for the choice.
        """
        params = {
            k: PLAIN.get(k, v) if isinstance(v, str) and v == "auto" else v
            for k, v in params.items()
        }
        if params["rank"] == 0 and not params["additive"]:
            raise InputError("rank=0 without additive part leaves no model: give additive=True")
        if params["rank"] == 0 and params["curvature"] == "last":
            raise InputError(
                'rank=0 has no cores that curvature="last" could choose from: give "ggn"'
            )
        return cls(
            rank=params["rank"],
            n_basis=spread("n_basis", params["n_basis"], None, n_columns),
            bases=spread("basis", params["basis"], BASES, n_columns),
            warps=spread("warp", params["warp"], WARPS, n_columns),
            solver=SOLVERS.get(params["solver"]),
            curvature=curvature_named(params["curvature"], params["core"], n_columns),
            truncation=Truncation(params["threshold"], params["relative_threshold"]),
            noise=policy_named(params["noise_precision"]),
            prior=policy_named(params["prior_precision"]),
            groups=GROUPS[params["prior_groups"]],
            max_steps=params["max_sweeps"],
            tol=params["tol"],
            row_dtype=params["row_dtype"],
            engine=ENGINES[params["engine"]],
            grow_rows=None if params["grow_rows"] == "auto" else bool(params["grow_rows"]),
            additive=params["additive"],
            rotate=params["rotate"],
            kinds=kinds,
            network=NETWORKS[params.get("network", "cpd")],
            likelihood=LIKELIHOODS[params.get("likelihood", "gaussian")],
        )

    def stages(self, n_rows: int, n_weights: int, n_columns: int) -> tuple[int, ...]:
        """Sizes of the parts of the rows that a fit begins on; () if it begins on all."""
        if self.grow_rows is False:
            return ()
        sizes = stages(n_rows, n_weights, n_columns)
        pays = n_rows >= max(_GROW_FROM_ROWS, _GROW_FROM_TIMES * min(sizes, default=n_rows))
        return sizes if self.grow_rows or pays else ()

    def n_weights(self, sizes: Sequence[int]) -> int:
        """Weights P for columns of ``sizes`` functions."""
        widths = self.network.widths(sizes, self.rank)
        products = sum(K * n for K, n in zip(widths, sizes, strict=True))
        return products + self.additive * sum(sizes)

    def settings(self, sizes: Sequence[int], n_rows: int, target_scale: float) -> Settings:
        """Settings for a table of this size whose target was divided by ``target_scale``."""
        P = self.n_weights(sizes)
        if isinstance(self.solver, ALS) and not self.likelihood.squared:
            raise InputError(
                'solver="als" solves least squares, which this likelihood is not: '
                'give solver="gauss_newton" or "matrix_free"'
            )
        solver = self.solver or SOLVERS[_solver_for(n_rows, P, squared=self.likelihood.squared)]
        check_size(
            sizes,
            self.network.widths(sizes, self.rank),
            self.curvature,
            solver,
            n_rows,
            rank=self.rank,
            additive=self.additive,
        )
        noise = self.noise
        if not self.likelihood.squared:
            noise = Fixed(1.0)
        elif isinstance(noise, Fixed):
            value = noise.value * target_scale * target_scale
            if not 0.0 < value < np.inf:
                raise InputError(
                    f"noise_precision={noise.value:g} is out of range for a target with standard "
                    f"deviation {target_scale:g}: give 1 / variance of the noise, or rescale y"
                )
            noise = Fixed(value)
        return Settings(
            rank=self.rank,
            solver=solver,
            curvature=self.curvature,
            truncation=self.truncation,
            noise=noise,
            prior=self.prior,
            groups=self.groups,
            max_steps=self.max_steps,
            tol=self.tol,
            rough=self.rough and not noise.expects,
        )


def _solver_for(n_rows: int, n_weights: int, *, squared: bool) -> str:
    """Solver that "auto" stands for."""
    small = min(n_rows, n_weights)
    dear = small > _GAUSS_NEWTON_SIZE or n_rows * n_weights * small > _GAUSS_NEWTON_WORK
    if dear:
        return "als" if squared else "matrix_free"
    return "gauss_newton" if n_rows < _MATRIX_FREE_ROWS else "matrix_free"
