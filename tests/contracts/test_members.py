"""Every member of every registry through the public estimator."""

import shutil

import pytest

from tensorlace.fitting import registry
from tests.helpers.member_contract import CHECKS

REGISTRIES = {
    "basis": registry.BASES,
    "warp": registry.WARPS,
    "prior_groups": registry.GROUPS,
    "network": registry.NETWORKS,
    "likelihood": registry.LIKELIHOODS,
    "curvature": registry.CURVATURES,
    "solver": registry.SOLVERS,
    "engine": registry.ENGINES,
    "noise_precision": registry.POLICIES,
    "prior_precision": registry.POLICIES,
}
"""Registries by the argument that takes their names."""

MEMBERS = [(argument, name) for argument, members in REGISTRIES.items() for name in members]
COMPILERS = any(map(shutil.which, ("cc", "gcc", "clang")))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("argument", "name"), MEMBERS)
def test_contract(check, argument, name, tmp_path):
    if name == "compiled" and not COMPILERS:
        pytest.skip("needs a C compiler")
    check({argument: name}, tmp_path)
