"""
First fit: a curve that knows how sure it is
============================================

Twenty noisy points of a cubic, the synthetic task of Saiapin & Batselier (2026). The model is told
what family of functions to use, and nothing about the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from tensorlace import TNKMRegressor
from tensorlace.displays import PredictiveDisplay

rng = np.random.default_rng(3)
X = rng.uniform(-4, 4, size=(20, 1))
y = X[:, 0] ** 3 + 3.0 * rng.standard_normal(20)

model = TNKMRegressor(rank=2, n_basis=4, basis="polynomial", warp="standardise", random_state=0)
model.fit(X, y)
print(f"noise: ±{model.noise_precision_**-0.5:.2f} found, ±3.00 true")

# %%
# One column makes a curve. The band holds a new observation with 90 % probability, noise included.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
PredictiveDisplay.from_estimator(model, X, y, ax=ax)

# %%
# The standard deviation has two parts. The noise is the same everywhere; what the model does not
# know grows where there are no rows, here outside of [-4, 4].

grid = np.linspace(-6, 6, 241)[:, None]
dist = model.predict_dist(grid)
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(grid, dist.std, label="std of a new y")
ax.plot(grid, dist.epistemic_std, label="of the model (epistemic)")
ax.plot(grid, dist.aleatoric_std, label="of the noise (aleatoric)")
ax.plot(X, np.zeros(20), "|", color="k", label="rows")
ax.set(xlabel="x", ylabel="standard deviation")
ax.legend(frameon=False)

# %%
# `extrapolated` names rows unlike those of training.

print(f"{model.extrapolated(grid).mean():.0%} of the grid is extrapolation")
