"""
What each column does, with bands
=================================

A model of diabetes progression after one year, from ten measurements of 442 patients: which columns
matter, and how.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from tensorlace import TNKMRegressor
from tensorlace.displays import EffectsDisplay, PredictiveDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X["sex"] = X["sex"].map({1.0: "one", 2.0: "two"})
model = TNKMRegressor(rank=4, random_state=0).fit(X, y)
print(model.summary())

# %%
# Average predictions as one column varies, along the rows that there are (the ticks). A band is
# about the average, not about a patient: it says how well the rows determine the curve.

EffectsDisplay.from_estimator(model, columns=["bmi", "s5", "bp", "sex", "age", "s1"])

# %%
# The numbers behind a panel.

effect = model.partial_effects("bmi", grid=[20.0, 25.0, 30.0, 35.0])
for value, mean, lower, upper in zip(
    effect.grid, effect.mean, effect.lower, effect.upper, strict=True
):
    print(f"bmi {value:.0f}: {mean:.0f} ({lower:.0f} to {upper:.0f})")

# %%
# For a single patient the noise is larger than all of this, and the intervals say so.

fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
PredictiveDisplay.from_estimator(model, X, y, kind="sorted", ax=ax)
