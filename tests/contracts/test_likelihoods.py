"""Every registered likelihood, against numerical derivatives and its own draws."""

import pytest

from tensorlace.fitting.registry import LIKELIHOODS
from tests.helpers.likelihood_contract import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_contract(name, check):
    check(LIKELIHOODS[name])
