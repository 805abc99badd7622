"""Forms that parts of a model have in files, where they are not the parts themselves.

Files of the first version hold the cores of a sum of products, and after them the weights of a sum
of one-column functions if there is one. They are still written so, and read by every version; any
other network is kept as it is.
"""

from dataclasses import dataclass, fields
from typing import Any, final

import numpy as np

from tensorlace._types import Array
from tensorlace.columns.columns import Columns
from tensorlace.columns.warps import Standardise
from tensorlace.errors import ModelFileError
from tensorlace.laplace.curvature import Curvature
from tensorlace.laplace.posterior import Posterior
from tensorlace.likelihoods.gaussian import GAUSSIAN
from tensorlace.machines.beyond.support import Support
from tensorlace.machines.fitted import Convergence, Fitted
from tensorlace.machines.machine import KernelMachine
from tensorlace.machines.noise import Noise
from tensorlace.networks.additive import Additive
from tensorlace.networks.cpd import CPD
from tensorlace.networks.network import Cores, Network
from tensorlace.networks.sum import Sum

__all__ = ["LATER_FIELDS", "FittedProducts", "MachineRecord", "in_file", "in_memory"]


@final
@dataclass(frozen=True)
class FittedProducts:
    """`Fitted`, of products and functions."""

    cores: Cores
    beta: float
    gamma: Cores
    curvature: Curvature
    posterior: Posterior
    log_evidence: float
    determined: float
    rss: float
    n_steps: int
    gradient: float
    rcond: float
    history: tuple[float, ...]
    convergence: Convergence | None = None


@final
@dataclass(frozen=True)
class MachineRecord:
    """`KernelMachine`, whose columns tell cores of products from what follows them."""

    columns: Columns
    target: Standardise
    fit: FittedProducts | Fitted
    unseen: tuple[Array, ...] | None
    n_pruned: int
    support: Support | None = None


LATER_FIELDS: dict[type, dict[str, Any]] = {
    FittedProducts: {"convergence": None},
    Fitted: {"convergence": None, "degrees": np.inf},
    MachineRecord: {"support": None},
    Noise: {"tails": np.inf},
}
"""Fields that the first files with a class did not have, and what they were then. At that value
they are left out, so that earlier versions of tensorlace read the file."""

_COMMON = tuple(f.name for f in fields(FittedProducts) if f.name != "cores")


def in_file(value: Any) -> Any:
    """What a file holds in place of ``value``."""
    if not isinstance(value, KernelMachine):
        return value
    parts = _parts(value)
    products = value.fit.network.products()
    normal = value.fit.likelihood == GAUSSIAN and np.isinf(value.fit.degrees)
    if products is not None and normal:
        cores, functions = products
        rest = {name: getattr(value.fit, name) for name in _COMMON}
        parts["fit"] = FittedProducts(cores if functions is None else (*cores, functions), **rest)
    return MachineRecord(**parts)


def in_memory(value: Any, where: str) -> Any:
    """What ``value`` of a file stands for; ``where`` it is, for messages.

    Raises
    ------
    ModelFileError
        If there are too many or too few cores.
    """
    if not isinstance(value, MachineRecord):
        return value
    parts = _parts(value)
    if isinstance(value.fit, FittedProducts):
        rest = {name: getattr(value.fit, name) for name in _COMMON}
        parts["fit"] = Fitted(_network(value.fit.cores, value.columns.sizes, where), **rest)
    return KernelMachine(**parts)


def _parts(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(MachineRecord)}


def _network(cores: Cores, sizes: tuple[int, ...], where: str) -> Network:
    """A sum of products, and of functions if one core is left."""
    D = len(sizes)
    if len(cores) not in (D, D + 1):
        raise ModelFileError(
            f"{where}.fit.cores does not fit the rest of the model: the file is wrong"
        )
    products = CPD(cores[:D])
    return products if len(cores) == D else Sum((products, Additive(cores[D], sizes)))
