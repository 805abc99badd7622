"""Fit of an estimator to a table in any form."""

from pathlib import Path
from time import monotonic
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_y, check_consistent_length

from tensorlace.columns.encoding import Encoding
from tensorlace.columns.raw import numeric_target
from tensorlace.errors import InputError
from tensorlace.estimators.fitted_attributes import HasFittedAttributes
from tensorlace.estimators.messages import (
    as_frame,
    checked,
    warn_about,
    warn_cut_short,
    warn_unfinished,
)
from tensorlace.estimators.tables import (
    column_names,
    fit_encoding,
    remember_columns,
    row_weights,
    weight_factor,
)
from tensorlace.estimators.target import scale_of_fit, scale_of_model
from tensorlace.estimators.train import train
from tensorlace.fitting.tails import distrusted_rows
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import FitRecord, FittedModel
from tensorlace.rows.stop import Stop, stoppable
from tensorlace.sources import ArraySource, RowSource, Table, open_source
from tensorlace.sources.dask import DaskTable, collection_table, is_collection
from tensorlace.sources.reference_rows import ReferenceRows, gather_reference_rows
from tensorlace.sources.target_scale import ScaledTarget
from tensorlace.sources.weighting import RescaledTable, weight_sums

__all__ = ["FitsTables"]

_TO_CALLER_OF_FIT = 5


class FitsTables(HasFittedAttributes):
    """Fits to tables in memory, on disk and on a cluster, as the arguments of the estimator say."""

    curvature: str
    threshold: float | None
    extrapolation: str
    tol: float
    random_state: Any
    weights: str
    time_limit: float | None

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
            A weight is a number of repetitions of its row; see ``weights``.
        """
        begun = monotonic()
        if is_collection(X):
            collection = collection_table(X, y, sample_weight)
            return self._fit(collection, remember_columns(self, collection.names), begun)
        table, encoding = fit_encoding(self, X)
        if y is None:
            raise InputError("TNKMRegressor requires y to be passed, but the target y is None")
        target = _check_y(numeric_target(y), y_numeric=True, estimator=self).astype(np.float64)
        check_consistent_length(table, target)
        weight, numbers = None, None
        if sample_weight is not None:
            weight = row_weights(sample_weight, table)
            numbers = np.flatnonzero(weight > 0.0)
            table, target, weight = (a[weight > 0.0] for a in (table, target, weight))
        names = column_names(self, table.shape[1])
        source = ArraySource(table, target, weight, names, missing=True)
        return self._fit(source, encoding, begun, numbers=numbers)

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
        begun = monotonic()
        if not isinstance(source, RowSource):
            if target is None:
                raise InputError("target is missing: name the column to predict")
            source = open_source(source, target)
        encoding = remember_columns(self, source.names)
        table: Table = source if client is None else DaskTable(source, client)
        path = None if checkpoint is None else Path(checkpoint)
        return self._fit(table, encoding, begun, path)

    def _fit(
        self,
        table: Table,
        encoding: Encoding,
        begun: float,
        checkpoint: Path | None = None,
        *,
        numbers: npt.NDArray[np.intp] | None = None,
    ) -> Self:
        """Fit; ``numbers`` are those of the rows in the user's table, if some were left out."""
        rng = check_random_state(self.random_state)
        table = self._weighed(table)
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        # what a checkpoint has kept is gone on with, so that an interrupt loses nothing
        with stoppable(on_interrupt=checkpoint is None) as request:
            limit = Stop(request=request)
            if self.time_limit is not None:
                limit = limit.by(begun + self.time_limit)
            scale = scale_of_fit(params, table)
            found = train(
                *(params, table, encoding.kinds, scale),
                rng=rng,
                checkpoint=checkpoint,
                stop=limit,
            )
        draw_seed = int(rng.randint(2**31 - 1))
        ensemble, rows = found.ensemble, gather_reference_rows(table)
        if self.extrapolation == "cautious":
            ensemble = ensemble.supported(rows.X, self._threads())
        fits = [machine.fit for machine in ensemble.machines]
        shares = ensemble.shares(rows.X) @ rows.weight
        judge, distrusted = found.judge, None
        if judge is not None:
            given = table if found.scale.trivial else ScaledTarget(table, found.scale)
            distrusted = distrusted_rows(judge, given, self._threads())
        if distrusted is not None and numbers is not None:
            distrusted = distrusted.numbered(numbers)
        scale = scale_of_model(params, found.scale, table, ensemble)
        if distrusted is not None:
            distrusted = distrusted.seen_through(scale)
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
            check=checked(found.unseen, scale),
            search_results=as_frame(found.results),
            noise_results=as_frame(found.noise_results),
            distrusted=distrusted,
        )
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(names)
        self.model_ = FittedModel(encoding, ensemble, rows, record, names, scale=scale)
        self.model_ = self.fitted_model()
        if found.cut is not None:
            warn_cut_short(found.cut)
        if found.results:  # candidates stop early on purpose
            if found.cut is None:
                warn_unfinished(fits, shares)
        else:
            full = self.curvature == "full" and self.threshold is None
            warn_about(fits, tol=self.tol, full=full)
        return self

    def _weighed(self, table: Table) -> Table:
        """The table with weights that are numbers of repetitions."""
        if table.weight is None:
            return table
        factor = weight_factor(weight_sums(table), self.weights, stacklevel=_TO_CALLER_OF_FIT)
        return table if factor == 1.0 else RescaledTable(table, factor)


def _precision(ensemble: Ensemble, rows: ReferenceRows) -> float:
    """Noise precision in units of y; where noise varies, of its mean square over the rows."""
    machines, scale = ensemble.machines, ensemble.machines[0].target.scale
    if ensemble.plain and ensemble.noise.trivial:
        betas = [machine.fit.beta for machine in machines]
        return float(np.average(betas, weights=ensemble.weights)) / scale / scale
    relative = ensemble.dist(rows.X).aleatoric_std / scale
    return 1.0 / float(rows.weight @ relative**2) / scale / scale
