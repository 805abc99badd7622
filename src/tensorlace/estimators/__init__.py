"""The scikit-learn face: arguments in, attributes out."""

from tensorlace.estimators.regressor import TNKMRegressor

__all__ = ["TNKMRegressor"]
