"""Inputs of a graph: one tensor of numbers, or one per column if some are not numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
import numpy.typing as npt

from tensorlace.columns.encoding import DayCodes, Encoding, LevelCodes, RawColumn
from tensorlace.columns.raw import raw_columns
from tensorlace.errors import InputError
from tensorlace.kinds import is_missing
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.portable import Builder, Input, Value

__all__ = ["Inputs", "onnx_inputs"]

_EPOCH = np.datetime64(0, "D")


@final
@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of the graph of a model, by its encoding.

    Attributes
    ----------
    names : tuple of str
        Of all columns.
    encoding : Encoding
    """

    names: tuple[str, ...]
    encoding: Encoding

    @classmethod
    def of(cls, model: FittedModel) -> "Inputs":
        """Inputs of a fitted model; what a graph could not tell apart is refused."""
        names, encoding = model.names, model.encoding
        for k, name in enumerate(names):
            if name in names[:k] and not encoding.plain:
                raise InputError(f"two columns are called {name!r}: rename one and fit again")
        for code in encoding.codes:
            if isinstance(code, LevelCodes) and not (_all(code, str) or _all(code, Real)):
                kinds = sorted({type(v).__name__ for v in code.numbers})
                raise InputError(
                    f"{code.name} has categories of types {', '.join(kinds)}: make all of them "
                    "text, or all of them numbers, and fit again"
                )
        return cls(names, encoding)

    @property
    def tensors(self) -> list[Input]:
        """Inputs of the graph."""
        if self.encoding.plain:
            return [Input("X", len(self.names))]
        codes = zip(self.names, self.encoding.codes, strict=True)
        return [Input(name, 1, "text" if _is_text(code) else "number") for name, code in codes]

    def columns(self, g: Builder) -> list[Value]:
        """The numbers of `Encoding` (n,), one column after the other."""
        tables = [g.input(source) for source in self.tensors]
        if self.encoding.plain:
            return [g.column(tables[0], d) for d in range(len(self.names))]
        codes = zip(self.encoding.codes, tables, strict=True)
        return [g.column(code.portable(g, x), 0) for code, x in codes]

    def describe(self) -> list[dict[str, Any]]:
        """One entry per column, for the metadata."""
        out = []
        for name, kind, code in zip(
            self.names, self.encoding.kinds, self.encoding.codes, strict=True
        ):
            entry: dict[str, Any] = {"name": name, "kind": repr(kind), "missing": "NaN"}
            if isinstance(code, DayCodes):
                entry["unit"] = "days since 1970-01-01 UTC"
            if isinstance(code, LevelCodes):
                entry["levels"] = [v if _is_text(code) else float(v) for v in code.numbers]
                if _is_text(code):
                    entry["missing"] = None if "" in code.numbers else ""
            out.append(entry)
        return out

    def feed(self, raw: Sequence[RawColumn]) -> dict[str, npt.NDArray[Any]]:
        """Tensors by name, from the columns of a table that are not all numbers."""
        parts = zip(self.names, self.encoding.codes, raw, strict=True)
        return {name: _fed(code, column.values)[:, None] for name, code, column in parts}


def onnx_inputs(model: FittedModel | HoldsModel, X: Any) -> dict[str, npt.NDArray[Any]]:
    """A table as the graph of a model wants it: ``session.run(None, onnx_inputs(model, X))``.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
    X : (n, D) array or data frame
        As for `predict`.

    Returns
    -------
    dict of arrays
        See `to_onnx` for what is in them.
    """
    fitted = holder(model).fitted_model()
    inputs, raw = Inputs.of(fitted), raw_columns(X)
    if inputs.encoding.plain or raw is None:
        table = fitted.encode(X)
        if inputs.encoding.plain:
            return {"X": table}
        raw = [RawColumn(column) for column in np.asarray(X, dtype=np.float64).T]
    return inputs.feed(raw)


def _all(code: LevelCodes, kind: type) -> bool:
    return all(isinstance(v, kind) for v in code.numbers)


def _is_text(code: Any) -> bool:
    return isinstance(code, LevelCodes) and code.text


def _fed(code: Any, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Tensor (n,) of one column."""
    if isinstance(code, DayCodes):
        return DayCodes(code.name, _EPOCH)(values)
    if not isinstance(code, LevelCodes):
        return np.asarray(code(values), dtype=np.float64)
    if _is_text(code):
        if "" in code.numbers and any(is_missing(v) for v in values):
            raise InputError(
                f"{code.name} has '' as a category, so a graph cannot be told that a value "
                "is missing: rename that category and fit again"
            )
        return np.array(["" if is_missing(v) else str(v) for v in values], dtype=object)
    other = min((float(v) for v in code.numbers), default=0.0) - 1.0
    items = [v if is_missing(v) or v in code.numbers else other for v in values.tolist()]
    return np.array([np.nan if is_missing(v) else float(v) for v in items])
