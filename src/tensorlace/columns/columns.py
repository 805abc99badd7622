"""Columns: a warp and a basis for each column of the table."""

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from tensorlace._types import Array, Mask
from tensorlace.columns.bases import Basis, BSpline, Fourier, Indicator, Levels, Missing
from tensorlace.columns.rotation import Rotation
from tensorlace.columns.summaries import ColumnSummary, summarise_table
from tensorlace.columns.warps import Codes, Cyclic, Warp
from tensorlace.errors import InputError
from tensorlace.kinds import Categorical, Kind, Numeric, Periodic
from tensorlace.portable import Builder, Value

__all__ = [
    "Column",
    "Columns",
    "Features",
    "columns_from_summaries",
    "fit_columns",
    "rows_of_levels",
]


@final
@dataclass(frozen=True)
class Column:
    """How one column becomes features: ``phi(variable(x))``, eq. (tensor_product_features).

    The variable of a missing value is NaN, or for categories, a code.

    Parameters
    ----------
    warp : Warp
        From raw values to the variable, fitted.
    basis : Basis
        From the variable to ``I`` features.
    name : str
        What the user calls the column.

    Examples
    --------
    >>> from tensorlace.columns.bases import Chebyshev
    >>> from tensorlace.columns.warps import MinMax
    >>> column = Column(MinMax.fit(np.array([0.0, 10.0])), Chebyshev(3), "age")
    >>> column.variable(np.array([0.0, 5.0, 10.0]))
    array([-1.,  0.,  1.])
    """

    warp: Warp
    basis: Basis
    name: str

    def variable(self, x: Array) -> Array:
        """Warp raw values (n,), then stretch [0, 1] to the home interval of the basis."""
        missing = np.isnan(x)
        if isinstance(self.warp, Codes) or not missing.any():
            u = self.warp(x)
        else:
            u = np.full(x.shape, np.nan)
            u[~missing] = self.warp(x[~missing])
        if self.warp.interval and self.basis.interval is not None:
            low, high = self.basis.interval
            u *= high - low
            u += low
        return u

    def phi(self, u: Array) -> Array:
        """Features (I, n) of variables (n,); typical ones where no training row had the like."""
        novel = self.basis.novel(u)
        if not novel.any():
            return self.basis.phi(u)
        phi = self.basis.phi(np.where(novel, 0.0, u))
        phi[:, novel] = self.basis.typical()[:, None]
        return phi

    def portable(self, g: Builder, x: Value) -> tuple[Value, Value | None]:
        """Features (I, n) of raw values (n,) as a graph, and a mask (n,) of novel ones, if any."""
        u = self._portable_variable(g, x)
        novel = self.basis.portable_novel(g, u)
        if novel is None:
            return self.basis.portable(g, u), None
        phi = self.basis.portable(g, g.where(novel, 0.0, u))
        return g.where(novel, self.basis.typical()[:, None], phi), novel

    def portable_outside(self, g: Builder, x: Value) -> Value | None:
        """`outside` as a graph: a mask (n,), or None if nothing ever is."""
        novel = self.basis.portable_novel(g, self._portable_variable(g, x))
        beyond = self.warp.portable_outside(g, x)
        if novel is None or beyond is None:
            return beyond if novel is None else novel
        return beyond | novel

    def _portable_variable(self, g: Builder, x: Value) -> Value:
        u = self.warp.portable(g, x)
        if self.warp.interval and self.basis.interval is not None:
            low, high = self.basis.interval
            u = u * (high - low) + low
        return u if isinstance(self.warp, Codes) else g.where(g.isnan(x), np.nan, u)

    def values_over(self, n: int) -> Array:
        """Variables all over the range of the training rows, about ``n`` of them."""
        low, high = self.basis.interval or (-1.0, 1.0)
        if not self.warp.interval:
            frame = getattr(self.warp, "frame", None)
            ends = np.array([low, high]) if frame is None else np.array([frame.low, frame.high])
            low, high = self.variable(ends)
        return self.basis.values_over(float(low), float(high), n)

    def outside(self, x: Array) -> Mask:
        """Tell which raw values (n,) lie beyond what was seen in training, missing ones included.

        A missing value is seen if one was missing in training.
        """
        return self.warp.outside(x) | self.basis.novel(self.variable(x))


@final
@dataclass(frozen=True)
class Columns:
    """All columns of a table, in order; with a rotation, its components come first."""

    columns: tuple[Column, ...]
    rotation: Rotation | None = None

    @property
    def n_columns(self) -> int:
        """Columns of the table; a rotation may leave fewer of them."""
        return len(self.columns) if self.rotation is None else self.rotation.n_columns

    @property
    def sizes(self) -> tuple[int, ...]:
        """``I_d`` of each column."""
        return tuple(column.basis.n for column in self.columns)

    def features(self, u: Array) -> "Features":
        """Features of all columns at variables (D, n), each made when it is asked for."""
        return Features(self.columns, u)

    def variables(self, X: Array) -> Array:
        """Variable of each column: (N, D) gives (D, N), C-contiguous."""
        X = self.inputs(X)
        U = np.empty(X.shape[::-1])
        for d, column in enumerate(self.columns):
            U[d] = column.variable(X[:, d])
        return U

    def outside(self, X: Array) -> Mask:
        """Tell which values of (N, D) lie beyond what their column saw in training."""
        X = self.inputs(X)
        beyond = np.empty(X.shape, dtype=np.bool_)
        for d, column in enumerate(self.columns):
            beyond[:, d] = column.outside(X[:, d])
        return beyond

    def beyond(self, X: Array) -> Array:
        """How far values of (N, D) lie beyond the range of their column: (D, N), see `Warp`."""
        X = self.inputs(X)
        return np.stack([c.warp.beyond(X[:, d]) for d, c in enumerate(self.columns)])

    def portable_beyond(self, g: Builder, x: Sequence[Value]) -> list[Value | None]:
        """`beyond` of each column, from the columns (n,) of a table."""
        x = self._portable_inputs(g, x)
        pairs = zip(self.columns, x, strict=True)
        return [column.warp.portable_beyond(g, values) for column, values in pairs]

    def portable(self, g: Builder, x: Sequence[Value]) -> list[tuple[Value, Value | None]]:
        """`Column.portable` of each column, from the columns (n,) of a table."""
        x = self._portable_inputs(g, x)
        return [column.portable(g, values) for column, values in zip(self.columns, x, strict=True)]

    def portable_outside(self, g: Builder, x: Sequence[Value]) -> list[Value | None]:
        """`outside` of each column, from the columns (n,) of a table."""
        x = self._portable_inputs(g, x)
        return [column.portable_outside(g, v) for column, v in zip(self.columns, x, strict=True)]

    def _portable_inputs(self, g: Builder, x: Sequence[Value]) -> Sequence[Value]:
        return x if self.rotation is None else self.rotation.portable(g, x)

    def inputs(self, X: Array) -> Array:
        """What the warps take: ``X`` (N, D), checked, and rotated if there is a rotation."""
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            raise InputError(
                f"X has shape {X.shape}; the model has {self.n_columns} columns: give an array of "
                f"shape (rows, {self.n_columns})"
            )
        return X if self.rotation is None else self.rotation(X)


@final
class Features(Sequence[Array]):
    """Features (I_d, n) of columns at variables (D, n), each made when it is asked for."""

    def __init__(self, columns: Sequence[Column], u: Array) -> None:
        self._columns, self._u = columns, u

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, d: Any) -> Any:
        return self._columns[d].phi(self._u[d])


def fit_columns(
    X: Array,
    w: Array | None,
    *,
    n_basis: tuple[int, ...],
    bases: tuple[Callable[[int], Basis], ...],
    warps: tuple[type[Warp], ...],
    names: tuple[str, ...],
    kinds: tuple[Kind, ...] | None = None,
    missing: bool = False,
) -> Columns:
    """Summarise the columns of a table in memory and call :func:`columns_from_summaries`.

    Parameters
    ----------
    X : ndarray of shape (N, D)
    w : ndarray of shape (N,) or None
        Row weights; rows of weight 0 are not seen.
    n_basis, bases, warps, names, kinds : tuples of length D
        As in :func:`columns_from_summaries`, which see also for the errors.
    missing : bool
        Take NaN as a missing value instead of refusing it.
    """
    _check_lengths(
        f"X has shape {X.shape}",
        X.shape[1] if X.ndim == 2 else -1,
        {"n_basis": n_basis, "bases": bases, "warps": warps, "names": names},
    )
    return columns_from_summaries(
        summarise_table(X, w, names, missing=missing),
        n_basis=n_basis,
        bases=bases,
        warps=warps,
        names=names,
        kinds=kinds,
    )


def columns_from_summaries(
    summaries: Sequence[ColumnSummary],
    *,
    n_basis: tuple[int, ...],
    bases: tuple[Callable[[int], Basis], ...],
    warps: tuple[type[Warp], ...],
    names: tuple[str, ...],
    kinds: tuple[Kind, ...] | None = None,
) -> Columns:
    """Fit the warp of each column and size its basis, from one pass over the rows.

    A basis gets no more functions than there are distinct values. So a constant column gets the
    smallest basis of its kind: it carries nothing. An indicator basis always gets
    :class:`~tensorlace.columns.warps.Codes` and one function per distinct value. Values that are
    missing in some rows cost one function more; a column without any value is constant.

    Parameters
    ----------
    summaries : sequence of ColumnSummary, length D
    n_basis : tuple of int, length D
        Wanted ``I_d``.
    bases : tuple of callables, length D
        From a number of functions to a basis: a class, or a partial application of one.
    warps : tuple of Warp classes, length D
    names : tuple of str, length D
    kinds : tuple of Kind, length D, optional
        Basis and warp of a categorical or periodic column follow from its kind. Any other kind is
        a number by now.

    Returns
    -------
    Columns

    Raises
    ------
    InputError
        For lengths that differ, rows that cannot be used, an indicator for too many distinct
        values, and a basis on [0, 1] after a warp that does not lead there.
    """
    _check_lengths(
        f"there are {len(summaries)} columns",
        len(summaries),
        {"n_basis": n_basis, "bases": bases, "warps": warps, "names": names},
    )
    kinds = kinds or (Numeric(),) * len(summaries)
    fitted = []
    for s, n, make, warp, name, kind in zip(
        summaries, n_basis, bases, warps, names, kinds, strict=True
    ):
        try:
            fitted.append(Column(*_fit_column(s, n, make, warp, kind), name))
        except InputError as error:
            label = name if name.startswith("column ") else f"column {name!r}"
            raise InputError(f"{label}: {error}") from error
    return Columns(tuple(fitted))


def rows_of_levels(
    columns: Columns, summaries: Sequence[ColumnSummary]
) -> tuple[tuple[float, ...], ...]:
    """Rows of each level of the columns of categories, in the order of codes; () for the others.

    Parameters
    ----------
    columns : Columns
    summaries : sequence of ColumnSummary, length D
        Those that the columns were fitted to.
    """
    pairs = zip(columns.columns, summaries, strict=True)
    return tuple(_rows_of_levels(column.basis, s) for column, s in pairs)


def _rows_of_levels(basis: Basis, s: ColumnSummary) -> tuple[float, ...]:
    if not isinstance(basis, Levels) or basis.n == 1:
        return ()
    return (*s.masses.tolist(), *((s.missing,) if s.missing else ()))


def _check_lengths(what: str, size: int, given: dict[str, Sized]) -> None:
    wrong = {key: len(value) for key, value in given.items() if len(value) != size}
    if wrong:
        raise InputError(f"{what}, but lengths are {wrong}; give one per column")


def _fit_column(
    s: ColumnSummary, n: int, make: Callable[[int], Basis], warp: type[Warp], kind: Kind
) -> tuple[Warp, Basis]:
    if s.empty and s.missing:
        return Codes.from_summary(s), Levels(1)
    if isinstance(kind, Categorical):
        codes = Codes.from_summary(s)
        return codes, Levels(codes.n + 1 if codes.n > 1 else 1)
    fitted: Warp
    basis: Basis
    if isinstance(kind, Periodic):
        fitted = Cyclic(kind.period)
        basis = Fourier(_at_most(n, s, fitted(s.values)))
        return fitted, Missing(basis) if s.missing else basis
    if isinstance(make(max(n, 1)), Indicator):
        codes = Codes.from_summary(s)
        return codes, make(codes.n)
    basis = make(n)
    if basis.bounded and not warp.interval:
        raise InputError(
            f"the {basis.name} basis lives on [0, 1], where {warp.__name__} does not lead; use "
            "the warp MinMax, Quantile or Mixed, or a basis without bounds such as Chebyshev"
        )
    least = basis.degree + 1 if isinstance(basis, BSpline) else 1
    basis = make(max(_at_most(n, s, s.values), least))
    return warp.from_summary(s), Missing(basis) if s.missing else basis


def _at_most(n: int, s: ColumnSummary, values: Array) -> int:
    """``n``, or the number of distinct values if that is less; a compressed sketch has many."""
    return n if s.compressions else min(n, np.unique(values).size)
