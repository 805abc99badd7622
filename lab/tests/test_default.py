"""How the default is measured on tables and simple data."""

import numpy as np

from tensorlace import Normal
from tensorlace_lab.default import simple, tables
from tensorlace_lab.measuring.cells import Cell


def test_quantiles_score_like_the_distribution_they_are_from():
    rng = np.random.default_rng(0)
    mean, std = rng.standard_normal(4000), rng.uniform(0.5, 2.0, 4000)
    dist = Normal(mean, np.zeros(4000), std)
    y = dist.sample(1, rng=1)[:, 0]
    found = tables.pinball_crps(y, dist.quantile(tables.LEVELS))
    ratio = found.mean() / dist.crps(y).mean()
    assert f"{1 - ratio:.1%} below" == tables.bias() == "0.4% below"
    # by hand: all quantiles of a certain forecast are equal, and its score is the absolute error
    certain = np.repeat(mean[:, None], len(tables.LEVELS), axis=1)
    np.testing.assert_allclose(
        tables.pinball_crps(y, certain), np.abs(y - mean) * 19 / 20, rtol=1e-12
    )


def test_a_simple_cell_is_beside_its_peer(monkeypatch):
    monkeypatch.setattr(simple, "TNKMRegressor", lambda random_state: Constant())
    found = simple.EXPERIMENT.run(Cell("simple", "noise, 200 rows", 1, "tnkm"), None)["metrics"]
    assert found["nll"] == found["peer_nll"]
    assert 0.88 < found["coverage90"] < 0.92
    assert 3.0 < found["width90"] < 3.6


class Constant:
    """Mean and deviation of the training rows, as what noise is held against."""

    relevance_ = np.zeros(4)

    def fit(self, X, y):
        self.moments = y.mean(), y.std()
        return self

    def predict_dist(self, X):
        return Normal(*(np.full(len(X), v) for v in self.moments[:1]), 0.0, self.moments[1])
