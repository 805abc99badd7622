"""The scikit-learn estimators: arguments in, attributes out.

Imports from: scales, predictive, kinds, sources, columns, rows, solvers, laplace, machines,
fitting, search, explain.
"""

from tensorlace.estimators.regressor import TNKMRegressor

__all__ = ["TNKMRegressor"]
