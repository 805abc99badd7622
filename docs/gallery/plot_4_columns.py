"""
Categories, hours of the day and missing values
===============================================

Nothing has to be encoded or filled in. Bicycle trips per hour, made up so that the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensorlace import Periodic, TNKMRegressor
from tensorlace.displays import EffectsDisplay

rng = np.random.default_rng(0)
n = 800
hour = rng.integers(0, 24, n)
weather = rng.choice(["clear", "rain", "snow"], n, p=[0.7, 0.25, 0.05])
warmth = rng.normal(14, 8, n)
trips = 40 + 25 * np.cos((hour - 17) / 24 * 2 * np.pi) + 1.5 * warmth
trips *= np.select([weather == "clear", weather == "rain"], [1.0, 0.6], 0.3)
y = trips + 5 * rng.standard_normal(n)
X = pd.DataFrame({"hour": hour, "weather": weather, "warmth": warmth})
X.loc[rng.random(n) < 0.1, "warmth"] = np.nan  # a thermometer that fails
X.loc[rng.random(n) < 0.1, "weather"] = None

# %%
# Text is categories; that hours run in a circle has to be said.

model = TNKMRegressor(rank=4, columns={"hour": Periodic(24)}, random_state=0).fit(X, y)
for name, kind in model.kinds_.items():
    print(f"{name}: {kind}")

# %%
# A missing category has an effect of its own, with a band. The curve of the hour closes.

EffectsDisplay.from_estimator(model, columns=["hour", "weather", "warmth"])

# %%
# A category that training did not have is predicted from what all of them have in common, and the
# model is less sure.

new = pd.DataFrame(
    {"hour": 12, "weather": ["clear", "snow", None, "hail"], "warmth": [20.0, 20.0, 20.0, 20.0]}
)
mean, std = model.predict(new, return_std=True)
print(new.assign(mean=mean.round(1), std=std.round(1), extrapolated=model.extrapolated(new)))

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.errorbar(range(4), mean, 1.64 * std, fmt="o", capsize=4)
ax.set_xticks(range(4), ["clear", "snow", "missing", "hail (never seen)"])
ax.set(ylabel="trips at noon, 20 degrees")
