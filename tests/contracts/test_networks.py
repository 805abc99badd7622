"""Every network of the registry, alone and with a sum of functions, and that sum alone."""

import pytest

from tensorlace.fitting.registry import NETWORKS
from tests.helpers.network_contract import (
    CHECKS,
    KIND_CHECKS,
    SHAPES,
    builders,
    case_of,
    functions,
)

BUILDERS = {"functions": functions}
for _name, _kind in NETWORKS.items():
    BUILDERS |= builders(_name, _kind)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("D", "R"), SHAPES)
@pytest.mark.parametrize("name", BUILDERS)
def test_contract(name, D, R, check):
    check(case_of(BUILDERS[name], D, R))


@pytest.mark.parametrize("check", KIND_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("D", "R"), [*SHAPES, (9, 16)])
@pytest.mark.parametrize("kind", NETWORKS.values(), ids=NETWORKS)
def test_contract_of_the_kind(kind, D, R, check):
    check(kind, D, R)
