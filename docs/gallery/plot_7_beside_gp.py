"""
Beside an exact Gaussian process
================================

The same rows, the same questions: where are the two unsure, and what do more rows bring?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from tensorlace import TNKMRegressor, metrics
from tensorlace_lab.systems import ExactGP

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-3, -0.8, 30), rng.uniform(0.8, 3, 30)])[:, None]
y = np.sin(2 * X[:, 0]) + 0.15 * rng.standard_normal(60)
grid = np.linspace(-3.5, 3.5, 300)[:, None]

# %%
# A gap in the middle. Both bands open there. Beyond the rows splines go on flat and the process
# returns to its mean: neither knows better, so look at `extrapolated`.

gp = ExactGP(random_state=0).fit(X, y)
model = TNKMRegressor(rank=1, n_basis=12, basis="bspline", random_state=0).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, name, system in zip(axes, ("exact GP", "tensorlace"), (gp, model), strict=True):
    dist = system.predict_dist(grid)
    for coverage, alpha in ((0.95, 0.2), (0.5, 0.4)):
        ends = dist.interval(coverage)
        ax.fill_between(grid[:, 0], *ends, alpha=alpha, color="C0", lw=0, label=f"{coverage:.0%}")
    ax.plot(grid, dist.mean, color="C0", label="mean")
    ax.plot(grid, np.sin(2 * grid), "k--", lw=1, label="truth")
    ax.plot(X, y, "k.", ms=4)
    ax.set(title=name, xlabel="x")
axes[0].legend(frameon=False, ncols=4, fontsize="small", loc="lower center")
axes[0].set_ylim(-2.2, 2)

# %%
# Friedman's first function, six columns. With few rows the process is the better one. But its cost
# grows with the cube of the rows, that of tensorlace in proportion to them: it can have more rows.

X, y = make_friedman1(3000, n_features=6, noise=1.0, random_state=0)
X_test, y_test = X[2000:], y[2000:]
settings = {"rank": 4, "prior_groups": "column_order", "tol": 1e-2, "random_state": 0}
print("                 rows   CRPS  in 95 %")
for name, system, n in (
    ("exact GP", ExactGP(random_state=0), 150),
    ("tensorlace", TNKMRegressor(**settings), 150),
    ("tensorlace", TNKMRegressor(**settings), 2000),
):
    scores = metrics.summary(y_test, system.fit(X[:n], y[:n]).predict_dist(X_test))
    print(f"{name:15s}{n:6d}{scores['crps']:7.3f}{scores['ecp95']:9.1%}")
