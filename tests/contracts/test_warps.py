"""Every registered warp, and those of categories and of periods: one contract."""

import pytest

from tensorlace.columns.warps import Codes
from tensorlace.fitting.registry import WARPS
from tests.helpers.warp_contract import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [*WARPS.values(), Codes])
def test_contract(check, kind):
    check(kind)
