"""A column is a warp and a basis; fit_columns sizes both."""

import pickle
from functools import partial

import numpy as np
import pytest

from tensorlace.columns.bases import (
    BSpline,
    Chebyshev,
    Cosine,
    Fourier,
    Indicator,
    Legendre,
    Levels,
    Missing,
    Polynomial,
    Sine,
    UnitPolynomial,
)
from tensorlace.columns.columns import Column, Columns, columns_from_summaries, fit_columns
from tensorlace.columns.summaries import LEAF_ROWS, merge_tables, summarise_leaf
from tensorlace.columns.warps import Codes, Cyclic, Identity, MinMax, Mixed, Quantile, Standardise
from tensorlace.errors import InputError
from tensorlace.kinds import Categorical, Datetime, Numeric, Ordinal, Periodic
from tensorlace.sources.reduction import tree_reduce

BOUNDED = (Cosine, Sine, Fourier, BSpline)
FREE = (UnitPolynomial, Polynomial, Chebyshev, Legendre)


def make_indicator(n):
    return Indicator(n)


def fit(x, basis, warp, n=5, w=None, kind=None, missing=False):
    """One column named ``age``."""
    return fit_columns(
        np.asarray(x, dtype=float)[:, None],
        w,
        n_basis=(n,),
        bases=(basis,),
        warps=(warp,),
        names=("age",),
        kinds=None if kind is None else (kind,),
        missing=missing,
    )


@pytest.mark.parametrize("basis", [*BOUNDED, *FREE])
@pytest.mark.parametrize("warp", [MinMax, Quantile, Mixed])
def test_interval_warps_fill_the_home_interval(basis, warp):
    x = np.random.default_rng(0).lognormal(size=40)
    column = fit(x, basis, warp).columns[0]
    u = column.variable(x)
    assert (u.min(), u.max()) == basis.interval
    low, high = basis.interval
    assert np.allclose(u, low + (high - low) * column.warp(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("basis", FREE)
@pytest.mark.parametrize("warp", [Standardise, Identity])
def test_other_warps_are_left_as_they_are(basis, warp):
    x = np.random.default_rng(1).normal(size=40)
    column = fit(x, basis, warp).columns[0]
    assert np.array_equal(column.variable(x), column.warp(x))


@pytest.mark.parametrize("basis", BOUNDED)
@pytest.mark.parametrize("warp", [Standardise, Identity, Codes])
def test_bounded_basis_after_unbounded_warp_is_refused(basis, warp):
    with pytest.raises(InputError) as caught:
        fit(np.arange(9.0), basis, warp)
    message = str(caught.value)
    for part in ("'age'", basis.name, warp.__name__, "MinMax, Quantile or Mixed", "Chebyshev"):
        assert part in message


@pytest.mark.parametrize("warp", [Standardise, MinMax, Quantile, Mixed, Codes, Identity])
@pytest.mark.parametrize("make", [Indicator, partial(Indicator), make_indicator])
def test_indicator_counts_its_categories(make, warp):
    x = np.array([4.0, 2.0, 4.0, 8.0, 2.0])
    columns = fit(x, make, warp, n=0)  # the wanted number is ignored
    assert isinstance(columns.columns[0].warp, Codes)
    assert columns.sizes == (3,)
    U = columns.variables(np.array([[8.0], [2.0], [5.0]]))
    assert U.tolist() == [[2.0, 0.0, -1.0]]
    assert columns.outside(np.array([[8.0], [5.0]])).tolist() == [[False], [True]]


def test_indicator_sees_only_rows_with_weight():
    columns = fit([1.0, 2.0, 3.0], Indicator, Codes, w=np.array([1.0, 0.0, 2.0]))
    assert columns.sizes == (2,)


@pytest.mark.parametrize("basis", [*BOUNDED, *FREE])
@pytest.mark.parametrize("w", [None, np.array([1.0, 0.5, 0.0])])
def test_constant_column_gets_the_smallest_basis(basis, w):
    x = [7.0, 7.0, 7.0 if w is None else 9.0]
    columns = fit(x, basis, MinMax, n=12, w=w)
    assert columns.sizes == (4 if basis is BSpline else 1,)
    column = columns.columns[0]
    phi = column.basis.phi(column.variable(np.array([7.0, 123.0, -1e300])))
    assert np.all(phi == phi[:, :1])  # whatever the value, the same features


def test_constant_column_keeps_the_parameters_of_its_basis():
    columns = fit([3.0, 3.0], partial(BSpline, degree=1), MinMax, n=9)
    assert columns.columns[0].basis == BSpline(2, degree=1)
    columns = fit([3.0, 3.0], partial(Cosine, lengthscale=0.5), MinMax, n=9)
    assert columns.columns[0].basis == Cosine(1, lengthscale=0.5)
    assert fit([3.0, 3.0], Chebyshev, Standardise).sizes == (1,)


def table():
    rng = np.random.default_rng(2)
    X = np.column_stack(
        [rng.normal(size=30), rng.integers(0, 3, 30), rng.uniform(size=30), np.ones(30)]
    )
    columns = fit_columns(
        X,
        None,
        n_basis=(4, 1, 6, 5),
        bases=(Chebyshev, Indicator, partial(BSpline, degree=2), Cosine),
        warps=(Standardise, MinMax, Quantile, Mixed),
        names=("a", "b", "c", "d"),
    )
    return X, columns


def test_table():
    X, columns = table()
    assert columns.n_columns == 4
    assert columns.sizes == (4, 3, 6, 1)
    assert [column.name for column in columns.columns] == ["a", "b", "c", "d"]
    U = columns.variables(X)
    assert U.shape == (4, 30)
    assert U.dtype == np.float64
    assert U.flags.c_contiguous
    for d, column in enumerate(columns.columns):
        assert np.array_equal(U[d], column.variable(X[:, d]))
    assert np.array_equal(columns.variables(np.asfortranarray(X)), U)
    assert np.array_equal(pickle.loads(pickle.dumps(columns)).variables(X), U)
    assert columns.variables(X[:0]).shape == (4, 0)
    assert not columns.outside(X).any()
    assert columns.outside(X + 100.0).all()
    assert columns.outside(X[:0]).shape == (0, 4)


def test_table_is_left_alone():
    X, columns = table()
    before = X.copy()
    columns.variables(X)
    fit(X[:, 0], Chebyshev, Identity).variables(X[:, :1])
    assert np.array_equal(X, before)


@pytest.mark.parametrize("shape", [(5, 3), (5,), (4, 5)])
def test_wrong_number_of_columns(shape):
    _, columns = table()
    for f in (columns.variables, columns.outside):
        with pytest.raises(InputError, match=r"4 columns: give an array of shape \(rows, 4\)"):
            f(np.zeros(shape))


def test_wrong_lengths():
    with pytest.raises(InputError, match=r"\(3, 2\).*'warps': 1.*one per column"):
        fit_columns(
            np.zeros((3, 2)),
            None,
            n_basis=(1, 1),
            bases=(Cosine, Cosine),
            warps=(MinMax,),
            names=("a", "b"),
        )


@pytest.mark.parametrize(
    ("x", "n", "basis", "part"),
    [
        ([1.0, np.nan], 3, Cosine, "not finite"),
        ([1.0, 2.0], 3, BSpline, "at least 4"),
        ([1.0, 2.0], 0, Legendre, "at least 1"),
        ([], 3, Legendre, "1 or more rows"),
    ],
)
def test_errors_name_the_column(x, n, basis, part):
    with pytest.raises(InputError, match=f"column 'age': .*{part}"):
        fit(x, basis, MinMax, n=n)


def test_values_of_a_column_by_hand():
    column = Column(MinMax.fit(np.array([10.0, 30.0])), Legendre(2), "x")
    assert column.variable(np.array([10.0, 25.0, 40.0])).tolist() == [-1.0, 0.5, 2.0]
    assert Columns((column,)).sizes == (2,)


def test_streamed_table_gives_the_same_columns():
    rng = np.random.default_rng(3)
    n = 3 * LEAF_ROWS + 7
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 3, n), rng.lognormal(size=n), np.full(n, 0.3)]
    )
    how = {
        "n_basis": (4, 1, 6, 5),
        "bases": (Chebyshev, Indicator, BSpline, Cosine),
        "warps": (Standardise, MinMax, Quantile, Mixed),
        "names": ("a", "b", "c", "d"),
    }
    leaves = (summarise_leaf(X[i : i + LEAF_ROWS]) for i in range(0, n, LEAF_ROWS))
    streamed = columns_from_summaries(tree_reduce(leaves, merge_tables), **how)
    whole = fit_columns(X, None, **how)
    assert streamed.sizes == whole.sizes == (4, 3, 6, 1)
    assert np.array_equal(streamed.variables(X).view(np.int64), whole.variables(X).view(np.int64))


def test_indicator_of_too_many_values_is_refused():
    with pytest.raises(InputError, match="column 'age': more than 16384 distinct values"):
        fit(np.arange(16_385.0), Indicator, Codes)
    assert fit(np.arange(16_384.0), Indicator, Codes).sizes == (16_384,)


def test_wrong_number_of_summaries():
    with pytest.raises(InputError, match=r"there are 0 columns.*'names': 1.*one per column"):
        columns_from_summaries((), n_basis=(), bases=(), warps=(), names=("a",))


# Few values.


@pytest.mark.parametrize("basis", [*BOUNDED, *FREE])
def test_no_more_functions_than_values(basis):
    x = np.arange(60) % 5
    assert fit(x, basis, MinMax, n=8).sizes == (5,)
    assert fit(x * 0.1, basis, MinMax, n=8).sizes == (5,)  # units do not matter
    assert fit(x, basis, MinMax, n=4).sizes == (4,)
    assert fit(x % 2, basis, MinMax, n=8).sizes == (4 if basis is BSpline else 2,)
    w = (x < 3) * 0.5
    assert fit(x, basis, MinMax, n=8, w=w).sizes == (4 if basis is BSpline else 3,)


def test_a_compressed_sketch_has_many_values():
    x = np.zeros(200_000)
    x[::10] = np.arange(20_000)
    assert fit(x, Cosine, MinMax, n=40).sizes == (40,)


# Kinds.


@pytest.mark.parametrize("kind", [Numeric(), Datetime(), Ordinal([1, 2])])
def test_other_kinds_are_numbers(kind):
    x = np.random.default_rng(4).normal(size=30)
    a, b = fit(x, Chebyshev, Quantile, kind=kind), fit(x, Chebyshev, Quantile)
    assert a.sizes == b.sizes
    assert np.array_equal(a.variables(x[:, None]), b.variables(x[:, None]))


@pytest.mark.parametrize("warp", [Standardise, MinMax])
def test_categories(warp):
    columns = fit([4.0, 2.0, 4.0, 8.0], Cosine, warp, kind=Categorical())
    column = columns.columns[0]
    assert column.basis == Levels(4)
    new = np.array([8.0, 2.0, 5.0, np.nan])
    assert column.variable(new).tolist() == [2.0, 0.0, -1.0, -1.0]
    assert column.outside(new).tolist() == [False, False, True, True]
    assert column.phi(column.variable(new)).T.tolist() == [
        [1, 0, 0, 1],
        [1, 1, 0, 0],
        [1, 0, 0, 0],
        [1, 0, 0, 0],
    ]


@pytest.mark.parametrize(("kind", "extra"), [(Categorical(), 1), (None, 0)])
def test_missing_is_a_category(kind, extra):
    x = [4.0, np.nan, 2.0, 4.0]
    column = fit(x, Indicator, Codes, kind=kind, missing=True).columns[0]
    assert column.basis == (Indicator(3) if kind is None else Levels(4))
    assert column.basis.n == 3 + extra
    new = np.array([4.0, 2.0, 3.0, np.nan])
    assert column.variable(new).tolist() == [1.0, 0.0, -1.0, 2.0]
    assert column.outside(new).tolist() == [False, False, True, False]


def test_one_category_carries_nothing():
    column = fit([3.0, 3.0], Cosine, MinMax, kind=Categorical()).columns[0]
    assert column.basis == Levels(1)
    assert column.outside(np.array([3.0, 4.0, np.nan])).tolist() == [False, True, True]
    assert column.basis.novel(column.variable(np.array([3.0, 4.0]))).tolist() == [False, True]


@pytest.mark.parametrize("missing", [False, True])
def test_cyclic_column(missing):
    x = np.array([0.0, 5.0, 23.0, 12.0, 24.0, np.nan if missing else 5.0])
    columns = fit(x, Chebyshev, Standardise, n=9, kind=Periodic(24), missing=True)
    column = columns.columns[0]
    assert column.warp == Cyclic(24)
    assert column.basis == (Missing(Fourier(4)) if missing else Fourier(4))  # 0 is 24
    new = np.array([-1.0, 23.0, 47.0, 6.0, 1e6 * 24 + 6.0])
    assert column.variable(new).tolist() == [23 / 24, 23 / 24, 23 / 24, 0.25, 0.25]
    assert not column.outside(new).any()
    assert column.outside(np.array([np.nan]))[0] == (not missing)
    assert fit(np.arange(24.0), Chebyshev, Standardise, n=9, kind=Periodic(24)).sizes == (9,)
    with pytest.raises(InputError, match="rows from 0 to 24 do not tell their period"):
        Cyclic.fit(x[:5])


# Missing values.


@pytest.mark.parametrize("basis", [*BOUNDED, *FREE])
@pytest.mark.parametrize("warp", [MinMax, Quantile, Mixed])
def test_missing_values(basis, warp):
    x = np.random.default_rng(0).lognormal(size=40)
    gaps = x.copy()
    gaps[::7] = np.nan
    there = ~np.isnan(gaps)
    columns = fit(gaps, basis, warp, missing=True)
    column, complete = columns.columns[0], fit(x[there], basis, warp).columns[0]
    assert column.basis == Missing(complete.basis)
    u = columns.variables(gaps[:, None])[0]
    assert np.array_equal(np.isnan(u), ~there)
    assert np.array_equal(u[there], complete.variable(x[there]))
    assert not columns.outside(gaps[:, None]).any()
    phi = column.phi(u)
    assert np.array_equal(phi[:-1, there], complete.phi(u[there]))
    assert np.array_equal(phi[:, ~there], column.basis.phi(u[~there]))
    assert np.array_equal(phi[-1], ~there)


@pytest.mark.parametrize("basis", [*BOUNDED, *FREE])
@pytest.mark.parametrize("warp", [MinMax, Quantile, Mixed])
@pytest.mark.parametrize("constant", [False, True])
def test_missing_where_none_was(basis, warp, constant):
    x = np.full(40, 3.0) if constant else np.random.default_rng(0).lognormal(size=40)
    column = fit(x, basis, warp).columns[0]
    gaps = np.where(np.arange(40) % 7, x, np.nan)
    there = ~np.isnan(gaps)
    u = column.variable(gaps)
    assert np.array_equal(column.basis.novel(u), ~there)
    assert np.array_equal(column.outside(gaps), ~there)
    phi = column.phi(u)
    assert np.array_equal(phi[:, there], column.basis.phi(column.variable(x[there])))
    assert np.all(phi[:, ~there] == column.basis.typical()[:, None])


@pytest.mark.parametrize("basis", [Cosine, BSpline, Chebyshev])
def test_constant_column_with_gaps(basis):
    """Only whether the value is there can matter."""
    column = fit([7.0, np.nan, 7.0], basis, MinMax, n=12, missing=True).columns[0]
    assert column.basis == Missing(basis(4) if basis is BSpline else basis(1))


@pytest.mark.parametrize("kind", [None, Categorical(), Periodic(7)])
@pytest.mark.parametrize("w", [None, np.array([0.5, 0.5, 0.0])])
def test_column_without_values_is_constant(kind, w):
    x = np.array([np.nan, np.nan, np.nan if w is None else 3.0])
    columns = fit(x, Cosine, MinMax, n=12, w=w, kind=kind, missing=True)
    assert columns.sizes == (1,)
    column = columns.columns[0]
    new = np.array([np.nan, 3.0])
    u = column.variable(new)
    assert column.phi(u).tolist() == [[1.0, 1.0]]
    assert column.basis.novel(u).tolist() == column.outside(new).tolist() == [False, True]
