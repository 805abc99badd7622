"""Fitted estimators with parts of what they have learnt replaced."""

from dataclasses import replace


def with_model(estimator, **changes):
    """Copy of an estimator whose fitted model has other fields."""
    return estimator.with_model(replace(estimator.model_, **changes))


def with_ensemble(estimator, **changes):
    """Copy of an estimator whose ensemble has other fields."""
    return with_model(estimator, ensemble=replace(estimator.model_.ensemble, **changes))


def with_record(estimator, **changes):
    """Copy of an estimator whose fit says something else of itself."""
    return with_model(estimator, record=replace(estimator.model_.record, **changes))
