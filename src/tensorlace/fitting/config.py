"""Everything that decides a fit, as objects: the seam below the estimators."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar, final

import numpy as np

from tensorlace.columns.bases.basis import Basis
from tensorlace.columns.warps import Warp
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
from tensorlace.kinds import Kind
from tensorlace.laplace.curvature import GGN, Curvature
from tensorlace.laplace.factorisation import Truncation
from tensorlace.laplace.precision import Evidence, Fixed, Policy
from tensorlace.laplace.prior_groups import Groups, for_levels, one_group
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cpd import CPD
from tensorlace.networks.engine import NUMPY, Engine
from tensorlace.networks.network import Network
from tensorlace.rows.stages import stages
from tensorlace.rows.stop import NEVER, Stop
from tensorlace.solvers.solver import Solver

__all__ = ["PLAIN", "Config", "per_column"]

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

DENSE_STEP_WORK = 2e10
"""Most multiplications ``N P min(N, P)`` of a Gauss-Newton step with which ``solver="auto"`` goes
for a small gradient. Beyond, the sweeps of ALS come within a percent of the optimum first."""

DENSE_STEP_SIZE = 3000
"""Largest system ``min(N, P)`` of a Gauss-Newton step with which ``solver="auto"`` does so."""

MATRIX_FREE_ROWS = 5_000
"""Rows from which ``solver="auto"`` takes Gauss-Newton without its matrix. With 8,000 rows or more
that ends lower in a fraction of the time (`lab/results/passes`); with fewer, a dense
step is cheap and where it ends is as often the better place."""

GROW_FROM_ROWS = 50_000
"""Fewest rows with which ``grow_rows="auto"`` begins a fit on a part of them."""

GROW_FROM_RATIO = 8
"""Fewest rows, in units of the first part, with which ``grow_rows="auto"`` begins on it."""


def per_column(
    name: str, value: T | Sequence[T], members: Mapping[T, V] | None, n_columns: int
) -> tuple[V, ...]:
    """One value for all columns or one per column, looked up in ``members`` if given."""
    one = isinstance(value, (str, int, np.integer))
    values: Iterable[T] = [value] * n_columns if one else value  # type: ignore[list-item, assignment]
    values = tuple(values)
    if len(values) != n_columns:
        raise InputError(
            f"{name} has {len(values)} entries but X has {n_columns} columns: "
            f"give one value for all columns or one per column"
        )
    if members is not None:
        return tuple(members[v] for v in values)
    if not all(isinstance(v, (int, np.integer)) and v >= 1 for v in values):
        raise InputError(f"{name} must be whole numbers of at least 1, got {list(values)}")
    return values  # type: ignore[return-value]


@final
@dataclass(frozen=True)
class Config:
    """What decides a fit. `for_table` settles what depends on the table.

    Attributes
    ----------
    rank : int
    n_basis, bases, warps : one entry per column
        For columns of numbers. Empty where rows are features already, as for `infer`.
    solver : Solver or None
        None until `for_table` chooses one by the number of rows and the work of a step.
    curvature : Curvature
        Which Hessian the posterior is made of.
    truncation : Truncation
        Directions of the posterior that are cut off.
    noise, prior : Policy
        How β and γ are found. A fixed noise precision is in units of y until `for_table` puts it
        in those of the standardised target.
    groups : function (network) -> Groups
        Weights that share a prior precision.
    max_steps : int
        Sweeps of ALS or steps of Gauss-Newton, precision rounds included.
    tol : float
        Relative gradient at which the MAP counts as found.
    precision_tol : float
        Largest relative change of a precision at which they count as found.
    row_dtype : str
        Of features and partial products of single rows.
    engine : Engine
        Arithmetic on a block of rows.
    grow_rows : bool or None
        Begin on a growing part of the rows; None: where that pays.
    additive, rotate : bool
        Add a sum of one-column functions; replace the columns of numbers by their components.
    kinds : tuple of Kind, optional
        What the columns are; numbers by default.
    network : type of ColumnNetwork
        What the columns' functions are combined by.
    likelihood : Likelihood
        How targets scatter about the response.
    tails : bool
        Reweight rows as Student's t does, so that wild ones count little.
    rough : bool
        For fits that are only compared: precision updates may lose half their digits.
    stop : Stop
        When the fit has to end with what it has.
    level_rows : tuple of tuples
        Rows of each level of the columns of categories, () for others; none at all before the
        columns are fitted.
    """

    rank: int
    n_basis: tuple[int, ...] = ()
    bases: tuple[Callable[[int], Basis], ...] = ()
    warps: tuple[type[Warp], ...] = ()
    solver: Solver | None = None
    curvature: Curvature = field(default_factory=GGN)
    truncation: Truncation = field(default_factory=Truncation)
    noise: Policy = field(default_factory=Evidence)
    prior: Policy = field(default_factory=Evidence)
    groups: Callable[[Network], Groups] = one_group
    max_steps: int = 200
    tol: float = 1e-8
    precision_tol: float = 1e-4
    row_dtype: str = "float64"
    engine: Engine = NUMPY
    grow_rows: bool | None = None
    additive: bool = False
    rotate: bool = False
    kinds: tuple[Kind, ...] | None = None
    rough: bool = False
    network: type[ColumnNetwork] = CPD
    likelihood: Likelihood = GAUSSIAN
    tails: bool = False
    stop: Stop = NEVER
    level_rows: tuple[tuple[float, ...], ...] = ()

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
        solver, grow_rows = params["solver"], params["grow_rows"]
        return cls(
            rank=params["rank"],
            n_basis=per_column("n_basis", params["n_basis"], None, n_columns),
            bases=per_column("basis", params["basis"], BASES, n_columns),
            warps=per_column("warp", params["warp"], WARPS, n_columns),
            solver=None if solver == "auto" else SOLVERS[solver],
            curvature=curvature_named(params["curvature"], params["core"], n_columns),
            truncation=Truncation(params["threshold"], params["relative_threshold"]),
            noise=policy_named(params["noise_precision"]),
            prior=policy_named(params["prior_precision"]),
            groups=GROUPS[params["prior_groups"]],
            max_steps=params["max_sweeps"],
            tol=params["tol"],
            row_dtype=params["row_dtype"],
            engine=ENGINES[params["engine"]],
            grow_rows=None if grow_rows == "auto" else bool(grow_rows),
            additive=params["additive"],
            rotate=params["rotate"],
            kinds=kinds,
            network=NETWORKS[params.get("network", "cpd")],
            likelihood=LIKELIHOODS[params.get("likelihood", "gaussian")],
        )

    @property
    def products(self) -> type[ColumnNetwork]:
        """``network``, or of rank 0 a sum of no products."""
        return self.network if self.rank else CPD

    def n_weights(self, sizes: Sequence[int]) -> int:
        """Weights P for columns of ``sizes`` functions."""
        widths = self.products.widths(sizes, self.rank)
        products = sum(K * n for K, n in zip(widths, sizes, strict=True))
        return products + self.additive * sum(sizes)

    def grouped(self, network: Network) -> Groups:
        """Weights that share a prior precision; rare levels have a prior of their own.

        A precision that is given is that of all weights.
        """
        groups = self.groups(network)
        if not (self.prior.learns and any(self.level_rows)):
            return groups
        return for_levels(groups, network, self.level_rows)

    def stages(self, n_rows: int, n_weights: int, n_columns: int) -> tuple[int, ...]:
        """Sizes of the parts of the rows that a fit begins on; () if it begins on all."""
        if self.grow_rows is False:
            return ()
        sizes = stages(n_rows, n_weights, n_columns)
        pays = n_rows >= max(GROW_FROM_ROWS, GROW_FROM_RATIO * min(sizes, default=n_rows))
        return sizes if self.grow_rows or pays else ()

    def for_table(self, sizes: Sequence[int], n_rows: int, target_scale: float) -> Self:
        """The same with solver and noise settled for a table, checked to fit in memory.

        Parameters
        ----------
        sizes : sequence of int
            Functions ``I_d`` of each column.
        n_rows : int
        target_scale : float
            What the target is divided by.

        Raises
        ------
        SizeError
            If the machine has too little memory.
        """
        squared = self.likelihood.squared
        if self.solver is not None and self.solver.least_squares and not squared:
            raise InputError(
                'solver="als" solves least squares, which this likelihood is not: '
                'give solver="gauss_newton" or "matrix_free"'
            )
        if self.tails and not squared:
            raise InputError('noise="student" needs likelihood="gaussian": another has its own')
        P = self.n_weights(sizes)
        solver = self.solver or SOLVERS[_solver_for(n_rows, P, squared=squared)]
        check_size(
            sizes,
            self.products.widths(sizes, self.rank),
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
        # a rough update knows no expected residuals
        return replace(self, solver=solver, noise=noise, rough=self.rough and not noise.expects)

    def what_is_fitted(self) -> tuple[object, ...]:
        """What a checkpoint must agree on: all that a fit depends on but its stopping rules."""
        return (
            *(self.rank, self.solver, self.curvature, self.truncation),
            *(self.noise, self.prior, self.groups.__name__),
            *(("tails",) if self.tails else ()),
            *((self.level_rows,) if any(self.level_rows) else ()),
        )


def _solver_for(n_rows: int, n_weights: int, *, squared: bool) -> str:
    """Solver that "auto" stands for."""
    small = min(n_rows, n_weights)
    if small > DENSE_STEP_SIZE or n_rows * n_weights * small > DENSE_STEP_WORK:
        return "als" if squared else "matrix_free"
    return "gauss_newton" if n_rows < MATRIX_FREE_ROWS else "matrix_free"
