"""
Laplace or linearised Laplace, and the spectrum behind them
===========================================================

The posterior of the weights is a Gaussian. Predictions can be drawn from it through the network
(LA) or through its linearisation (LLA, the default). The difference is large where the rows leave
weights undetermined.
"""

import matplotlib.pyplot as plt
import numpy as np

from tensorlace import TNKMRegressor, metrics
from tensorlace.displays import SpectrumDisplay

rng = np.random.default_rng(1)
X = rng.uniform(-2, 2, size=(400, 3))
y = np.sin(X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] ** 2 + 0.2 * rng.standard_normal(400)
train, test = slice(0, 150), slice(150, None)

# %%
# Eigenvalues of the posterior precision: large ones belong to directions that the rows determine,
# the flat end to the prior. A threshold t̂ declares the directions below it certain.

models = {
    kind: TNKMRegressor(rank=3, curvature=kind, random_state=0).fit(X[train], y[train])
    for kind in ("ggn", "block", "last")
}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for ax, (kind, model) in zip(axes, models.items(), strict=True):
    SpectrumDisplay.from_estimator(model, threshold=1.0, ax=ax)
    ax.set_title(f'curvature="{kind}"')

# %%
# Test NLL over the threshold. Without truncation the draws of LA follow directions along which the
# network is not linear at all; with it both agree. LLA never needs it.

thresholds = [1e-1, 1e1, 1e3, 1e4]
scores = {"linearized": [], "sampled": []}
for t in thresholds:
    model = TNKMRegressor(rank=3, threshold=t, random_state=0).fit(X[train], y[train])
    for predictive, values in scores.items():
        model.set_params(predictive=predictive)
        values.append(metrics.nll(y[test], model.predict_dist(X[test])))

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for (predictive, values), name in zip(scores.items(), ("LLA", "LA"), strict=True):
    ax.plot(thresholds, values, "o-", label=f"{name} ({predictive})")
ax.set(xscale="log", xlabel="threshold", ylabel="test NLL")
ax.legend(frameon=False)
