"""
Intervals before and after calibration
======================================

A model with normal noise meets targets with heavy tails. Its intervals are wrong, and held-out rows
mend them.
"""

import matplotlib.pyplot as plt
import numpy as np

from tensorlace import TNKMRegressor, metrics
from tensorlace.displays import CalibrationDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(1200, 2))
y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_t(2.2, size=1200)
train, held_out, test = np.split(np.arange(1200), [400, 800])

model = TNKMRegressor(rank=4, noise="gaussian", random_state=0).fit(X[train], y[train])

# %%
# Heavy tails make the noise look large, so most intervals are too wide. The grey band is where a
# model that is right would be, with this many rows.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
CalibrationDisplay.from_estimator(model, X[test], y[test], name="as fitted", ax=left)
CalibrationDisplay.from_estimator(model, X[test], y[test], kind="pit", ax=right)

# %%
# `calibrate` takes rows that the fit has not seen (split conformal prediction). Afterwards
# `predict_interval` covers at least what it says, on average over rows like these.

before = np.subtract(*model.predict_interval(X[test], coverage=0.8)[::-1])
model.calibrate(X[held_out], y[held_out])
lower, upper = model.predict_interval(X[test], coverage=0.8)
inside = np.mean((lower <= y[test]) & (y[test] <= upper))
print(f"80 % intervals now hold {inside:.0%}")
print(f"width {np.mean(upper - lower):.2f}, before {before.mean():.2f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
CalibrationDisplay.from_estimator(model, X[test], y[test], name="calibrated", ax=left)
CalibrationDisplay.from_estimator(model, X[test], y[test], kind="pit", ax=right)

# %%
# `check_calibration` says the same in a sentence, and warns if rows contradict the model.

print(model.check_calibration(X[test], y[test]))
crps = metrics.crps(y[test], model.predict_dist(X[test]))
print(f"CRPS {crps:.3f} (calibration leaves it alone)")
