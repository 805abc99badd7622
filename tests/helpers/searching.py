"""Small tables and tasks for searches."""

import numpy as np

from tensorlace import TNKMRegressor
from tensorlace.fitting.config import Config
from tensorlace.search.task import Task


def table(n=150, seed=0, D=3):
    """A wave in one column times another, and noise of 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, D))
    return X, np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


def auto(**settings):
    """The default estimator with a budget of a second."""
    return TNKMRegressor(rank="auto", time_budget=1.0, random_state=0, **settings)


def config_of(n_columns, **params):
    """What the search does not decide."""
    return Config.of(TNKMRegressor(**params).get_params(), n_columns)


def task_for(n_columns, **how):
    """A search with a budget of a second."""
    how = {"given": {}, "seed": 0, "budget": 1.0, **how}
    return Task(config_of(n_columns), **how)
