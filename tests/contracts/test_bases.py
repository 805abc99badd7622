"""Every registered basis, and those that wrap one or stand for kinds of columns: one contract."""

import numpy as np
import pytest

from tensorlace.columns.bases import Levels, Missing, Subset
from tensorlace.errors import InputError
from tensorlace.fitting.registry import BASES
from tests.helpers.basis_contract import CHECKS, bad_sizes_are_refused

SIZES = (1, 2, 3, 4, 7, 8, 16, 33, 64)


def of_sizes(make):
    """Bases of all sizes that there can be."""
    found = []
    for n in SIZES:
        try:
            found.append(make(n))
        except InputError:  # a spline has more functions than its degree
            continue
    return found


REGISTERED = [basis for make in BASES.values() for basis in of_sizes(make)]
CASES = [
    *REGISTERED,
    *of_sizes(Levels),
    *(Missing(basis) for basis in REGISTERED if basis.n < 9 and basis.interval is not None),
    *(
        Subset(basis, tuple(range(0, basis.n, 2)))
        for basis in REGISTERED
        if 2 < basis.n < 9 and basis.interval is not None
    ),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("basis", CASES, ids=repr)
def test_contract(check, basis):
    check(basis)


@pytest.mark.parametrize(
    "basis", [of_sizes(make)[0] for make in (*BASES.values(), Levels)], ids=repr
)
def test_bad_sizes(basis):
    bad_sizes_are_refused(basis)


@pytest.mark.parametrize("name", BASES)
def test_names_are_those_of_the_registry(name):
    assert of_sizes(BASES[name])[0].name == name


def test_sizes_are_tried_for_every_member():
    assert all(len(of_sizes(make)) >= 5 for make in BASES.values())
    assert np.all([basis.n in SIZES for basis in REGISTERED])
