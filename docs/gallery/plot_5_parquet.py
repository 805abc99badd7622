"""
Rows that stay on disk
======================

`fit_rows` reads a table in pieces, as often as it has to, and keeps only sums. This file is small
so that the page builds quickly; the steps are the same for one that does not fit in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensorlace import TNKMRegressor
from tensorlace.displays import PredictiveDisplay

rng = np.random.default_rng(0)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.parquet"


def piece(n):
    """Some rows: a wave whose height depends on a second column."""
    X = rng.uniform(-2, 2, size=(n, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(n)
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": y})


with pq.ParquetWriter(path, piece(1).schema) as writer:
    for _ in range(3):
        writer.write_table(piece(10_000))
print(f"{pq.read_metadata(path).num_rows:,} rows in {path.stat().st_size / 1e6:.1f} MB")

# %%
# ALS and the curvature of one core need one pass over the rows per sweep, and little memory.

model = TNKMRegressor(
    rank=4,
    n_basis=12,
    basis="chebyshev",
    warp="minmax",
    solver="als",
    curvature="last",
    tol=1e-2,
    memory_budget=1,  # keep nothing between passes, as if the file were huge
    random_state=0,
)
model.fit_rows(path, target="y", checkpoint=Path(folder.name) / "fit")
print(f"{model.n_rows_:,} rows, {model.n_iter_} steps, noise ±{model.noise_precision_**-0.5:.3f}")

# %%
# With so many rows nearly all that is left is noise.

test = piece(300).to_pandas()
dist = model.predict_dist(test[["a", "b"]])
share = np.mean(dist.epistemic_std**2 / dist.std**2)
print(f"share of the variance that is the model's: {share:.2%}")
fig, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
PredictiveDisplay.from_estimator(model, test[["a", "b"]], test["y"], ax=ax)
folder.cleanup()
