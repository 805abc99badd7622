"""A new noise: a class, its family and one line, and it is chosen, predicts and draws."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from tensorlace import TNKMRegressor, load, save
from tensorlace.machines.noise import Noise, with_noise
from tensorlace.machines.noise_model import NoiseModel
from tensorlace.machines.noises.family import NoiseFamily, NoiseGrid
from tensorlace.machines.noises.registry import NOISES
from tensorlace.predictive.distributions import Normal
from tensorlace.report import write_report
from tensorlace.search.noise_selection import Residuals, choose_again, choose_noise
from tensorlace.search.search import search
from tensorlace.search.settings import NoiseSettings
from tensorlace.sources import ArraySource
from tests.helpers.registered import registered
from tests.helpers.searching import table, task_for

SETTINGS = NoiseSettings()
WIDE = 12.0
"""Standard deviation of an outlier."""


@dataclass(frozen=True, eq=False)
class Contaminated(NoiseModel):
    """Normal noise of which a share has a much larger standard deviation."""

    share: float
    factor: float = 1.0
    shrink: float = 1.0
    strength: float = 0.0
    machines: tuple = ()

    @property
    def kind(self):
        return "contaminated"

    @property
    def description(self):
        return f"normal, {self.share:.0%} of it much wider"

    @property
    def trivial(self):
        return False

    @property
    def valid(self):
        return 0.0 < self.share < 1.0 and self.factor > 0.0 and self.shrink > 0.0

    @property
    def parameters(self):
        return {"factor": self.factor, "share": self.share}

    @property
    def scale_mixture(self):
        return np.array([1.0 - self.share, self.share]), np.array([1.0, WIDE])

    def log_variance(self, X, threads=1):
        return np.zeros(len(X))

    def scaled(self, shrink):
        return replace(self, shrink=shrink)

    def with_machines(self, machines):
        return self

    def portable(self, g, x):
        return None


class Contaminations(NoiseFamily):
    """Some shares of outliers."""

    name, noise, varies = "contaminated", Contaminated, False

    def candidates(self, grid: NoiseGrid, machines, level) -> Iterator[Contaminated]:
        return (Contaminated(s, f) for s in (0.02, 0.05, 0.1) for f in grid.factors)

    def neighbours(self, noise, grid):
        return self.candidates(grid, (), 0.0)


@pytest.fixture
def contaminated():
    with registered(NOISES, "contaminated", Contaminations()):
        yield


def outliers(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.uniform(size=n) < 0.05, WIDE, 1.0) * rng.standard_normal(n)


def test_names_are_those_of_the_families_and_their_members():
    assert list(NOISES) == ["gaussian", "student", "varying", "varying_student"]
    grid = SETTINGS.grid
    sizes = {"gaussian": 13, "student": 13 * 5, "varying": 5 * 13, "varying_student": 5 * 13 * 5}
    for name, family in NOISES.items():
        members = list(family.candidates(grid, (None,) * family.varies, 0.5))
        assert len(members) == sizes[name]
        assert {(type(m), m.kind) for m in members} == {(family.noise, name)}
        assert {m.level for m in members} == {0.5 * family.varies}
        assert all(m.valid for m in members)


def test_neighbours_keep_the_variation():
    noise = Noise(0.7, 4.0, 1.4, (None,), 0.3)
    for name in ("varying", "varying_student"):
        members = list(NOISES[name].neighbours(noise, SETTINGS.grid))
        assert {(m.strength, m.machines, m.level) for m in members} == {(1.4, (None,), 0.3)}
        assert {m.kind for m in members} == {name}


@pytest.mark.usefixtures("contaminated")
def test_a_new_noise_is_chosen_where_it_is_the_right_one():
    n = 4000
    y = outliers(n)
    rows = Residuals(np.zeros((n, 1)), y, None, Normal(np.zeros(n), 0.01, np.ones(n)))
    noise, results = choose_noise(rows, None, tuple(NOISES), SETTINGS)
    assert (noise.kind, noise.share) == ("contaminated", 0.05)
    assert [row["noise"] for row in results] == ["gaussian", "student", "contaminated"]
    assert [row["share"] for row in results if row["chosen"]] == [0.05]
    exact = np.log(0.95 * stats.norm.pdf(y) + 0.05 * stats.norm.pdf(y, 0.0, WIDE))
    scores = with_noise(rows.dist, noise, np.zeros(n)).logpdf(y)
    assert scores.mean() == pytest.approx(exact.mean(), abs=0.003)
    again, _ = choose_again(rows, Noise(), tuple(NOISES), SETTINGS)
    assert again.kind == "contaminated"


@pytest.mark.usefixtures("contaminated")
def test_a_new_noise_goes_through_a_search():
    X, y = table(300)
    y = y + 0.1 * outliers(300)
    ensemble = search(task_for(3, noise=("contaminated",)), ArraySource(X, y)).ensemble
    assert isinstance(ensemble.noise, Contaminated)
    dist = ensemble.dist(X[:3])
    draws = ensemble.draws(X[:3], 40_000, np.random.default_rng(1), linearized=True)
    np.testing.assert_allclose(draws.std(axis=1), dist.std, rtol=0.06)
    weights, stds = ensemble.noise.scale_mixture
    expected = (ensemble.noise.shrink * ensemble.noise.factor) ** 2 * (weights @ stds**2)
    assert ensemble.noise.variance_factor == pytest.approx(expected)


@pytest.mark.usefixtures("contaminated")
def test_a_new_noise_is_an_argument_is_saved_and_reported(tmp_path):
    X, y = table(300)
    y = y + 0.1 * outliers(300)
    model = TNKMRegressor(time_budget=0.5, noise="contaminated", n_jobs=1, random_state=0)
    model.fit(X, y)
    assert model.noise_.kind == "contaminated"
    assert model.noise_results_["noise"].tolist()[-1] == "contaminated"
    assert "of it much wider" in str(model.summary())
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again.noise_, Contaminated)
    dist, same = model.predict_dist(X[:5]), again.predict_dist(X[:5])
    np.testing.assert_array_equal(dist.std, same.std)
    np.testing.assert_array_equal(dist.logpdf(y[:5]), same.logpdf(y[:5]))
    write_report(model, X, y, tmp_path / "report.html")
    assert "contaminated" in (tmp_path / "report.html").read_text()
