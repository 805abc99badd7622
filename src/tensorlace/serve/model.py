"""A fitted model as the server uses it: tables in, predictions out."""

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from tensorlace.errors import InputError
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.serve.values import ColumnValues

__all__ = ["OUTPUTS", "ServedModel"]

OUTPUTS = ("mean", "std", "lower", "upper", "novelty", "unlike")
"""Numbers of a row, and the reason why it is unlike training rows: text, empty if it is not."""


@final
@dataclass(frozen=True, eq=False)
class ServedModel:
    """A fitted model under a name.

    Attributes
    ----------
    name : str
    model : FittedModel
        Takes one thread: requests run beside each other.
    values : ColumnValues
    target : str or None
    """

    name: str
    model: FittedModel
    values: ColumnValues
    target: str | None = None

    @classmethod
    def of(cls, model: FittedModel | HoldsModel, name: str, target: str | None = None) -> Self:
        """Serve a copy of a fitted model that predicts with one thread."""
        fitted = replace(holder(model).fitted_model(), threads=1)
        return cls(name, fitted, ColumnValues.of(fitted), target)

    def predict(self, table: Any, coverage: float) -> dict[str, list[Any]]:
        """`OUTPUTS`, each n long, for a table of `ColumnValues`."""
        with np.errstate(all="ignore"):  # what overflows is refused below, or by the distribution
            dist, novelty = self.model.dist_and_novelty(self.model.encode(table))
            lower, upper = self.model.interval(dist, coverage)
        numbers = (dist.mean, dist.std, lower, upper, novelty.measure)
        bad = ~np.all([np.isfinite(x) for x in numbers], axis=0)
        if bad.any():
            raise InputError(
                f"row {int(np.argmax(bad))} is so far from training that its prediction is no "
                "finite number: leave it out"
            )
        columns = (*(x.tolist() for x in numbers), list(novelty.reasons))
        return dict(zip(OUTPUTS, columns, strict=True))

    def example(self) -> dict[str, Any]:
        """A row of typical values: medians, and most frequent categories."""
        row: dict[str, Any] = {}
        rows = self.model.rows
        encoding = self.values.encoding
        for d, (name, kind) in enumerate(zip(self.values.names, self.values.kinds, strict=True)):
            x = np.zeros(1) if rows is None else rows.X[:, d]
            x = x[x >= 0.0] if kind == "category" else x[~np.isnan(x)]
            if not x.size:
                row[name] = None
            elif kind == "category":
                values, counts = np.unique(x, return_counts=True)
                level = encoding.decoded(d, values[[np.argmax(counts)]])[0]
                row[name] = level.item() if isinstance(level, np.generic) else level
            elif kind == "date":
                row[name] = str(encoding.decoded(d, np.floor(np.median(x, keepdims=True)))[0])
            else:
                row[name] = float(f"{np.median(x):.4g}")
        return row
