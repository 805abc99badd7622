"""Fit of an estimator to a table in any form."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_y, check_consistent_length

from tensorlace.columns.encoding import Encoding
from tensorlace.columns.raw import numeric_target
from tensorlace.errors import InputError
from tensorlace.estimators.fitted_attributes import HasFittedAttributes
from tensorlace.estimators.messages import as_frame, checked, warn_about
from tensorlace.estimators.tables import (
    column_names,
    fit_encoding,
    remember_columns,
    row_weights,
)
from tensorlace.estimators.train import train
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import FitRecord, FittedModel
from tensorlace.sources import ArraySource, RowSource, Table, open_source
from tensorlace.sources.dask import DaskTable, collection_table, is_collection
from tensorlace.sources.reference_rows import ReferenceRows, gather_reference_rows

__all__ = ["FitsTables"]


class FitsTables(HasFittedAttributes):
    """Fits to tables in memory, on disk and on a cluster, as the arguments of the estimator say."""

    curvature: str
    threshold: float | None
    tol: float
    random_state: Any

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Parameters
        ----------
        X : (N, D) array, data frame or Dask collection
            Numbers, booleans, strings or other categories, dates; any value of an array or frame
            may be missing.
        y : (N,) array
        sample_weight : (N,) array, optional
            A weight is a number of repetitions of its row.
        """
        if is_collection(X):
            collection = collection_table(X, y, sample_weight)
            return self._fit(collection, remember_columns(self, collection.names))
        table, encoding = fit_encoding(self, X)
        if y is None:
            raise InputError("TNKMRegressor requires y to be passed, but the target y is None")
        target = _check_y(numeric_target(y), y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(table, target)
        weight = None
        if sample_weight is not None:
            weight = row_weights(sample_weight, table)
            table, target, weight = (a[weight > 0.0] for a in (table, target, weight))
        names = column_names(self, table.shape[1])
        return self._fit(ArraySource(table, target, weight, names, missing=True), encoding)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_rows(
        self,
        source: RowSource | str | Path,
        target: str | None = None,
        *,
        client: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Fit to rows that live on disk or come in blocks, by the same path and to the same bits.

        Parameters
        ----------
        source : RowSource or path
            See `tensorlace.sources`; a path names CSV or Parquet: a file, a directory or a glob.
        target : str
            Column to predict, if ``source`` is a path.
        client : distributed.Client, optional
            Cluster whose workers read and sum the rows; they must see the same files.
        checkpoint : path, optional
            Written after every step. A fit that finds it goes on from there, to the same bits.
        """
        if not isinstance(source, RowSource):
            if target is None:
                raise InputError("target is missing: name the column to predict")
            source = open_source(source, target)
        encoding = remember_columns(self, source.names)
        table: Table = source if client is None else DaskTable(source, client)
        return self._fit(table, encoding, None if checkpoint is None else Path(checkpoint))

    def _fit(self, table: Table, encoding: Encoding, checkpoint: Path | None = None) -> Self:
        rng = check_random_state(self.random_state)
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        found = train(params, table, encoding.kinds, rng=rng, checkpoint=checkpoint)
        draw_seed = int(rng.randint(2**31 - 1))
        ensemble = found.ensemble
        rows = gather_reference_rows(table)
        fits = [machine.fit for machine in ensemble.machines]
        shares = ensemble.shares(rows.X) @ rows.weight
        record = FitRecord(
            estimator=type(self).__name__,
            arguments=params,
            n_rows=int(table.n_rows),
            log_evidence=float(np.average([f.log_evidence for f in fits], weights=shares)),
            noise_precision=_precision(ensemble, rows),
            n_iter=max(f.n_steps for f in fits),
            n_dropped=sum(f.posterior.n_dropped for f in fits),
            n_pruned=sum(machine.n_pruned for machine in ensemble.machines),
            draw_seed=draw_seed,
            check=checked(found.unseen),
            search_results=as_frame(found.results),
            noise_results=as_frame(found.noise_results),
        )
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(names)
        self.model_ = FittedModel(encoding, ensemble, rows, record, names)
        self.model_ = self.fitted_model()
        if not found.results:  # candidates stop early on purpose
            full = self.curvature == "full" and self.threshold is None
            warn_about(fits, tol=self.tol, full=full)
        return self


def _precision(ensemble: Ensemble, rows: ReferenceRows) -> float:
    """Noise precision in units of y; where noise varies, of its mean square over the rows."""
    machines, scale = ensemble.machines, ensemble.machines[0].target.scale
    if ensemble.plain and ensemble.noise.trivial:
        betas = [machine.fit.beta for machine in machines]
        return float(np.average(betas, weights=ensemble.weights)) / scale / scale
    relative = ensemble.dist(rows.X).aleatoric_std / scale
    return 1.0 / float(rows.weight @ relative**2) / scale / scale
