"""Names of bases, warps, prior groups, networks, curvatures, solvers, engines and policies.

The one place where strings become objects. A new member is one line here, or one call from
anywhere: ``BASES.register("mine", MyBasis)``.
"""

from collections.abc import Callable
from functools import partial

from tensorlace._registry import Registry
from tensorlace.columns import bases, warps
from tensorlace.columns.bases.basis import Basis
from tensorlace.errors import InputError
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Curvature, Diag, Full, Last
from tensorlace.laplace.precision import Evidence, Fixed, GammaVI, Policy
from tensorlace.laplace.prior_groups import (
    Groups,
    one_group,
    per_column,
    per_column_and_order,
    per_order,
    per_rank_term,
)
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.likelihoods.likelihood import Likelihood
from tensorlace.networks.column_network import ColumnNetwork
from tensorlace.networks.cpd import CPD
from tensorlace.networks.engine import Engine, NumPyEngine
from tensorlace.networks.native.engine import CompiledEngine
from tensorlace.networks.network import Network
from tensorlace.networks.tensor_train import TensorTrain
from tensorlace.solvers.als import ALS
from tensorlace.solvers.gauss_newton import GaussNewton
from tensorlace.solvers.matrix_free import MatrixFree
from tensorlace.solvers.solver import Solver

__all__ = [
    "BASES",
    "CURVATURES",
    "ENGINES",
    "GROUPS",
    "LIKELIHOODS",
    "NETWORKS",
    "POLICIES",
    "SOLVERS",
    "WARPS",
    "curvature_named",
    "policy_named",
]

COSINE_LENGTHSCALE = 0.5
"""Length scale of the default cosine basis, in units of the column's range: smooth functions are
cheap a priori, wiggles are not. Without it products of ten columns overfit."""

BASES: Registry[Callable[[int], Basis]] = Registry(
    "basis",
    {
        "unit_polynomial": bases.UnitPolynomial,
        "polynomial": bases.Polynomial,
        "chebyshev": bases.Chebyshev,
        "legendre": bases.Legendre,
        "cosine": partial(bases.Cosine, lengthscale=COSINE_LENGTHSCALE),
        "sine": bases.Sine,
        "fourier": bases.Fourier,
        "bspline": bases.BSpline,
        "indicator": bases.Indicator,
    },
)
"""From a number of functions to a basis: a class, or a partial application of one."""

WARPS: Registry[type[warps.Warp]] = Registry(
    "warp",
    {
        "standardise": warps.Standardise,
        "minmax": warps.MinMax,
        "quantile": warps.Quantile,
        "mixed": warps.Mixed,
        "identity": warps.Identity,
    },
)
"""Classes of warps, which are fitted to a column."""

GROUPS: Registry[Callable[[Network], Groups]] = Registry(
    "prior_groups",
    {
        "all": one_group,
        "column": per_column,
        "order": per_order,
        "column_order": per_column_and_order,
        "rank": per_rank_term,
    },
)
"""Weights that share a prior precision: functions ``(network) -> Groups``."""

CURVATURES: Registry[Curvature] = Registry(
    "curvature",
    {"last": Last(), "block": BlockDiagonal(), "ggn": GGN(), "diag": Diag(), "full": Full()},
)
"""Hessians that the posterior can be made of; "last" also takes a core, see `curvature_named`."""

SOLVERS: Registry[Solver] = Registry(
    "solver",
    {"als": ALS(), "gauss_newton": GaussNewton(), "matrix_free": MatrixFree()},
)
"""Ways to the MAP."""

NETWORKS: Registry[type[ColumnNetwork]] = Registry("network", {"cpd": CPD, "tt": TensorTrain})
"""Classes of networks that combine the functions of the columns."""

ENGINES: Registry[Engine] = Registry(
    "engine", {"numpy": NumPyEngine(), "compiled": CompiledEngine()}
)
"""Arithmetic on a block of rows."""

LIKELIHOODS: Registry[Likelihood] = Registry("likelihood", {"gaussian": GAUSSIAN})
"""How targets are distributed around the network."""

POLICIES: Registry[Policy] = Registry("precision", {"evidence": Evidence(), "vi": GammaVI()})
"""Ways to learn a noise or prior precision."""


def curvature_named(name: str, core: int | None, n_columns: int) -> Curvature:
    """Curvature by name; ``core`` picks the Bayesian core of "last"."""
    if name != "last":
        return CURVATURES[name]
    if core is not None and not -n_columns <= core < n_columns:
        raise InputError(
            f"core={core} does not exist: X has {n_columns} columns, so -1 is the last"
        )
    return Last(None if core is None else core % n_columns)


def policy_named(value: str | float) -> Policy:
    """Look up "evidence" or "vi", or fix the precision to a number."""
    return POLICIES[value] if isinstance(value, str) else Fixed(float(value))
