"""The experiments: small versions of each, resumption, statistics, the page."""

import json
import math
import signal
import subprocess
import sys
from html import escape
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.model_selection import RepeatedKFold
from tensorlace_lab.measuring.quality import with_quality
from tensorlace_lab.measuring.records import Cell, Records
from tensorlace_lab.pages.page import write
from tensorlace_lab.paper.commands import NAMES, experiment_named

from tensorlace import Normal, TNKMRegressor, metrics
from tensorlace.errors import InputError, SourceError
from tensorlace.fitting.registry import CURVATURES
from tensorlace.laplace.curvature import Last
from tensorlace.networks.cpd import environments, factors, jacobian
from tensorlace_lab.datasets import UCI, UciSet, checksum, load_uci
from tensorlace_lab.measuring import systems
from tensorlace_lab.measuring.data import SETS, split_of, standardised
from tensorlace_lab.measuring.runner import Experiment, Options, run
from tensorlace_lab.measuring.statistics import contenders, mean_and_error, paired_p, ranking
from tensorlace_lab.pages import tables
from tensorlace_lab.pages.drawings import critical_difference
from tensorlace_lab.pages.markup import html_table
from tensorlace_lab.paper import (
    ablation,
    beside,
    complexity,
    corrected,
    cubic,
    equal_size,
    literature,
    main,
    published,
)
from tensorlace_lab.paper.refits import Refit

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def small():
    """A set of two columns, 80 training rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 0] ** 2 + 0.1 * rng.standard_normal(100)
    return standardised(X[:80], X[80:], y[:80], y[80:])


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A data directory with a tiny "yacht", which is taken for the real one."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    table = np.column_stack([X, X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(40)])
    file = {"delimiter": ",", "fmt": "%.17g", "header": "x1,x2,y", "comments": ""}
    np.savetxt(tmp_path / "yacht.csv", table, **file)
    monkeypatch.setitem(UCI, "yacht", UciSet(("x1", "x2"), 40, checksum(table), ()))
    return tmp_path


# data


def test_load_and_split(directory, monkeypatch):
    X, y, names = load_uci("yacht", directory)
    assert X.shape == (40, 2)
    assert names == ("x1", "x2")
    monkeypatch.setenv("TENSORLACE_DATA", str(directory))
    split = split_of("yacht", 3)
    assert abs(split.y.mean()) < 1e-12
    assert split.y.std() == pytest.approx(1.0)
    assert len(split.y_test) == 4
    original = np.concatenate([split.y, split.y_test]) * split.scale
    assert np.ptp(original) == pytest.approx(np.ptp(y))


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("boston", SourceError, r"no boston\.csv in .*: leave data out to fetch it"),
        ("mars", InputError, "no set 'mars': use boston, "),
    ],
)
def test_missing_data_says_what_to_do(directory, name, error, match):
    with pytest.raises(error, match=match):
        split_of(name, 1, directory)


# the authors' procedure


def test_grid_has_the_authors_numbers_of_options():
    shapes = {"yacht": (277, 6), "boston": (455, 13), "energy": (691, 8), "wine": (1439, 11)}
    shapes |= {"concrete": (927, 8), "kin8nm": (7372, 8), "naval": (10740, 16), "power": (8611, 4)}
    counts = {name: len(published.grid(*shape)) for name, shape in shapes.items()}
    expected = {"yacht": 10, "boston": 10, "energy": 17, "wine": 17}
    assert counts == {**expected, "concrete": 21, "kin8nm": 21, "naval": 12, "power": 31}


@pytest.mark.parametrize("shape", [(2, 4), (4, 2)])  # structured and dense Gram
def test_published_sweeps_solve_the_cores(small, shape):
    """Against least squares on the design matrix of the last core, others held."""
    fit = published.fit(small.X, small.y, *shape, None)
    phi = published._features((small.X - fit.mean) / fit.scale, shape[1])
    Z = environments(factors(fit.cores, phi))[-1]
    A = (Z[:, None, :] * phi[-1]).reshape(-1, len(small.y)).T
    G = A.T @ A + 1e-5 * np.eye(A.shape[1])
    best = np.linalg.solve(G, A.T @ small.y)
    np.testing.assert_allclose(A @ best, A @ fit.cores[-1].ravel(), atol=1e-6)


def test_published_deviation_is_the_sum(small):
    fit = published.fit(small.X, small.y, 2, 3, 1e-5)
    dist = fit.predict(small.X_test, 1e-5)
    assert np.all(dist.std > 1 / np.sqrt(fit.beta))
    phi = published._features((small.X_test - fit.mean) / fit.scale, 3)
    J = jacobian(fit.cores, phi, [1])
    values, vectors = fit.eigen
    exact = np.sqrt(np.sum((vectors.T @ J) ** 2 / values[:, None], axis=0))
    drawn = dist.std - 1 / np.sqrt(fit.beta)
    assert 0.6 < np.median(drawn / exact) < 1.4  # thirty draws
    far = fit.predict(small.X_test, np.inf)  # every direction cut off: only noise is left
    np.testing.assert_allclose(far.std, 1 / np.sqrt(fit.beta))


def test_published_gammas_accumulate(small):
    """Five rounds from Gamma(1, 1): with zero residual β would be (1 + 5 N/2) / 1."""
    fit = published.fit(small.X, small.y, 2, 3, 1e-5)
    assert fit.beta < 1 + 2.5 * len(small.y)
    one = published.fit(small.X, small.y, 2, 3, 1e-5, published.Settings(rounds=1))
    assert one.beta < 1 + 0.5 * len(small.y)
    assert fit.beta != one.beta


@pytest.mark.parametrize("curvature", ["full", "ggn", "block", "diag", "last"])
def test_published_hessians(small, curvature):
    settings = published.Settings(curvature)
    fit = published.fit(small.X, small.y, 2, 3, None, settings)
    values, vectors = fit.eigen
    H = vectors @ np.diag(values) @ vectors.T - 1e-5 * np.eye(len(values))
    phi = published._features((small.X - fit.mean) / fit.scale, 3)
    J = jacobian(fit.cores, phi)
    G = J @ J.T
    own = {"last": G[6:, 6:], "ggn": G, "diag": np.diag(np.diag(G))}
    own["block"] = np.kron(np.eye(2), np.ones((6, 6))) * G
    if curvature == "full":  # two columns: the residual term pairs equal rank terms
        r = phi_response(fit, phi) - small.y
        E = np.zeros_like(G)
        for k in range(2):
            tile = (phi[0] * r) @ phi[1].T
            E[3 * k : 3 * k + 3, 6 + 3 * k : 9 + 3 * k] = tile
            E[6 + 3 * k : 9 + 3 * k, 3 * k : 3 * k + 3] = tile.T
        own["full"] = G + E
    np.testing.assert_allclose(H, own[curvature], atol=1e-7 * np.abs(G).max())


def phi_response(fit, phi):
    return np.prod([V @ p for V, p in zip(fit.cores, phi, strict=True)], axis=0).sum(axis=0)


def test_sampled_and_linearised_agree_for_the_last_core(small):
    fit = published.fit(small.X, small.y, 2, 3, 1e-5)
    linear = fit.predict(small.X_test, 1e-3)
    sampled = fit.predict(small.X_test, 1e-3, linearized=False)
    np.testing.assert_allclose(linear.std, sampled.std, rtol=1e-9)


def test_published_cubic_is_a_linear_model():
    x, y, new, _ = cubic.sample(1)
    dist = published.cubic(x, y, new, 1, 4, 1 / 9)
    A = np.vander(x, 4, increasing=True)
    v = np.linalg.solve(A.T @ A / 9 + np.eye(4), A.T @ y / 9)
    np.testing.assert_allclose(dist.mean, np.vander(new, 4, increasing=True) @ v, rtol=1e-9)


# the corrected procedure


@pytest.mark.parametrize("name", ["last", "ggn", "block", "diag", "full"])
@pytest.mark.parametrize("threshold", [None, 1.0])
def test_refit_is_the_posterior_of_the_library(small, name, threshold):
    """The same cores, curvature, precision and threshold through the estimator's own path."""
    model = TNKMRegressor.paper(2, 3, threshold, curvature=name, random_state=0, tol=0.0)
    model.fit(small.X, small.y)
    refit = Refit.of(model, small.X, small.y)
    ours = refit.machine(threshold).linearized(small.X_test)
    theirs = model.predict_dist(small.X_test)
    np.testing.assert_allclose(ours.mean, theirs.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.std, theirs.std, rtol=1e-6)


def test_refit_noise_precision_is_a_fixed_point(small):
    model = TNKMRegressor.paper(2, 3, random_state=0).fit(small.X, small.y)
    refit = Refit.of(model, small.X, small.y)
    for threshold in (None, 1e-3, 10.0):
        beta = refit.noise_precision(threshold)
        machine = refit.machine(threshold, beta)
        J = jacobian(
            machine.fit.cores,
            [c.phi(u) for c, u in zip(
                machine.columns.columns, machine.columns.variables(small.X), strict=True)],
            machine.fit.bayesian_cores,
        )  # fmt: skip
        expected = refit.rss + machine.fit.posterior.quad(J).sum()
        assert beta == pytest.approx(len(small.y) / expected, rel=1e-5)
    # and close to the one that the fit itself found
    assert refit.noise_precision(None) == pytest.approx(model.machines_[0].fit.beta, rel=0.02)


def test_corrected_choice_is_the_best_by_hand(small):
    sizes, thresholds, how = [(1, 2), (2, 3)], (1e-5, 10.0), {"max_sweeps": 20}
    chosen = corrected.choose(small.X, small.y, ("ggn", "last"), sizes, thresholds, **how)
    assert chosen[:2] == (2, 3)  # the truth has products and squares
    scores = {}
    folds = RepeatedKFold(n_splits=3, n_repeats=2, random_state=1)
    for train, test in folds.split(small.X):
        X, y = small.X[train], small.y[train]
        starts = [
            TNKMRegressor.paper(
                2, 3, curvature="block", prior_precision="vi", random_state=s, **how
            ).fit(X, y)
            for s in (1, 2, 3)
        ]
        model = max(starts, key=lambda m: m.log_evidence_)
        for bend, name in ((CURVATURES["ggn"], "ggn"), (Last(1), "last")):
            for t in thresholds:
                refit = Refit.of(model, X, y, bend)
                dist = refit.machine(t, refit.noise_precision(t)).linearized(small.X[test])
                scores[t, name] = scores.get((t, name), 0.0) + dist.logpdf(small.y[test]).mean()
    assert chosen[2:] == max(scores, key=scores.get)


def test_corrected_predicts_with_the_hessian_it_chose(small):
    X, y = small.X[:30], small.y[:30] * 2.0
    dist, about = corrected.select(X, y, small.X_test, ("last",), max_sweeps=10)
    assert len(dist) == len(small.X_test)
    assert about["curvature"] == "last"
    assert about["prior_precision"] not in (1e-5, 1.0)  # inferred
    np.testing.assert_allclose(dist.aleatoric_std, about["noise_precision"] ** -0.5, rtol=1e-9)


# scores, statistics, literature


def test_scores_by_draws_and_exactly():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(400)
    dist = Normal(np.zeros(400), 0.0, 1.0)
    exact, drawn = systems.score(y, dist), systems.score(y, dist, draws=300)
    assert exact["nll"] == drawn["nll"] == metrics.nll(y, dist)
    assert exact["wcpi95"] != drawn["wcpi95"]
    assert exact["wcpi95"] == pytest.approx(drawn["wcpi95"], rel=0.02)
    gaps = np.abs(np.array(exact["coverages"]) - systems.LEVELS)
    assert gaps.mean() == pytest.approx(exact["rce"])


def test_unknown_systems_are_refused():
    with pytest.raises(InputError, match="choose from"):
        systems.system_named("crystal-ball", "default")
    with pytest.raises(InputError, match="protocol"):
        systems.system_named("tnkm", "wishful")


def test_paired_test_without_correction_is_scipys():
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1.0, size=10)
    plain = stats.ttest_1samp(d, 0.0).pvalue
    assert paired_p(d, test_share=0.0) == pytest.approx(plain)
    assert paired_p(d) > plain  # overlapping training sets know less
    assert paired_p([0.5]) == 1.0
    assert paired_p([0.5, 0.5]) == 0.0
    assert math.isnan(mean_and_error([1.0])[1])


def test_contenders():
    close = {s: 1.0 + 0.1 * (-1) ** s for s in range(6)}
    far = {s: 9.0 + 0.01 * s for s in range(6)}
    best, good = contenders({"a": dict.fromkeys(range(6), 1.0), "b": close, "c": far})
    assert good == {"a", "b"}
    assert best in good


def test_ranking_is_scipys():
    scores = np.random.default_rng(0).normal([0.0, 1.0, 2.0, 1.0], size=(9, 4))
    found = ranking(list("abcd"), scores)
    assert found.p == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)
    assert found.critical == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 9)), abs=2e-3)  # Demšar
    ties = np.round(scores)
    assert ranking(list("abcd"), ties).p == pytest.approx(
        stats.friedmanchisquare(*ties.T).pvalue, rel=1e-9
    )
    assert "a 1." in critical_difference(found)


def test_literature_in_one_unit():
    assert set(literature.NLL) == set(literature.SCORES) == set(literature.HESSIANS) == set(SETS)
    for name in SETS:
        assert literature.NLL[name]["LA-TNKM"] == literature.SCORES[name]["nll"]
        assert literature.HESSIANS[name]["last"][1] == literature.SCORES[name]["nll"]
        best = min(
            (v, s) for s in literature.NLL[name]
            if (v := literature.standardised_nll(name, s)) is not None
        )  # fmt: skip
        assert best[1] != "LA-TNKM"  # it wins none of the nine in one unit
    # a prediction of mean and deviation costs 1.42 standardised: what BBB reached on naval
    assert literature.standardised_nll("naval", "BBB") == pytest.approx(1.42, abs=0.01)


# resumption


class Counting(Experiment):
    """Counts how often each cell is worked on."""

    name = "counting"
    title = "Counting"

    def __init__(self, stop_at=None):
        self.seen, self.stop_at = [], stop_at

    def cells(self, options):
        return [Cell(self.name, "yacht", k, "tnkm", "default") for k in (1, 2, 3, 4)]

    def run(self, cell, data):
        if cell.split == self.stop_at:
            raise KeyboardInterrupt
        self.seen.append(cell.split)
        return {"metrics": {"nll": float(cell.split)}}

    def markdown(self, records):
        return ""


def test_stopped_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "tnkm-default.jsonl"
    first = Counting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        run(first, first.cells(Options()), Records(tmp_path), tell=lambda line: None)
    assert first.seen == [1, 2]
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 4])  # a torn line
    second, told = Counting(), []
    assert run(second, second.cells(Options()), Records(tmp_path), tell=told.append) == 0
    assert second.seen == [3, 4]
    assert "2 of 4 cells were there" in told[0]
    assert told[-1].endswith("0 s left")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["split"] for line in lines] == [1, 2, 3, 4]
    assert {"seed", "versions", "date", "seconds", "peak_mb", "metrics", "command"} <= set(lines[0])
    third = Counting()
    run(third, third.cells(Options()), Records(tmp_path), tell=lambda line: None)
    assert third.seen == []
    run(third, third.cells(Options())[:1], Records(tmp_path), fresh=True, tell=lambda line: None)
    assert third.seen == [1]
    assert len(Records(tmp_path)) == 4


KILLED = """
import os, signal, sys
from pathlib import Path
from test_experiments import Counting
from tensorlace.experiments.records import Records
from tensorlace.experiments.runner import Options, run

class Dying(Counting):
    def run(self, cell, data):
        print(cell.split, flush=True)
        if cell.split == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(cell, data)

run(Dying(), Dying().cells(Options()), Records(Path(sys.argv[1])))
"""


def test_killed_run_loses_one_cell(tmp_path):
    """SIGKILL in the middle of the third cell; the next run begins with that one."""

    def work(die_at):
        return subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path), str(die_at)],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
        )  # fmt: skip

    first = work(3)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.split() == ["1", "2", "3"]
    assert len(Records(tmp_path)) == 2
    second = work(0)
    assert second.returncode == 0
    assert second.stdout.split() == ["3", "4"]
    assert sorted(r["split"] for r in Records(tmp_path)) == [1, 2, 3, 4]


def test_broken_line_in_the_middle_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_text("{\n{}\n")
    with pytest.raises(InputError, match="line 1 of"):
        Records(tmp_path)


def test_failed_cell_does_not_cost_the_others(tmp_path):
    class Failing(Counting):
        def run(self, cell, data):
            if cell.split == 2:
                raise ValueError("no luck")
            return super().run(cell, data)

    told = []
    experiment, records = Failing(), Records(tmp_path)
    assert run(experiment, experiment.cells(Options()), records, tell=told.append) == 1
    assert experiment.seen == [1, 3, 4]
    assert any("failed: ValueError: no luck" in line for line in told)


def test_numbers_that_are_not_finite_become_null(tmp_path):
    records = Records(tmp_path)
    cell = Cell("x", "yacht", 1, "tnkm", "default")
    records.add(cell, {"metrics": {"nll": math.inf, "a": np.array([1.0, math.nan])}})
    assert next(iter(Records(tmp_path)))["metrics"] == {"nll": None, "a": [1.0, None]}


# small versions of each


def test_ablation_curves(small):
    for protocol in ("published", "corrected"):
        lla = ablation.curve(small, "ggn", protocol, size=(2, 3))["metrics"]
        la = ablation.curve(small, "ggn", protocol, linearized=False, size=(2, 3))["metrics"]
        last = ablation.curve(small, "last", protocol, size=(2, 3))["metrics"]
        assert len(lla["nll"]) == len(la["nll"]) == len(last["nll"]) == 7
        assert np.all(np.isfinite([lla["nll"], last["nll"]]))
        assert lla["largest"] > 0


def test_equal_size(small):
    found = equal_size.compare(small, (2, 3))
    assert len(found["lla_by_core"]) == 2
    assert found["lla_by_core"][-1] == found["lla_last"]
    # the model is linear in the last core: LA is LLA up to the draws
    assert found["la_last"] == pytest.approx(found["lla_last"], abs=0.1)
    model = corrected.fit(small.X, small.y, (2, 3), max_sweeps=100, n_jobs=1)
    refit = Refit.of(model, small.X, small.y, CURVATURES["ggn"])
    dist = refit.machine(None, refit.noise_precision(None)).linearized(small.X_test)
    assert found["lla_ggn"] == pytest.approx(metrics.nll(small.y_test, dist))
    assert [p.values.size for p in Refit.of(model, small.X, small.y, Last(0)).parts] == [6]


def test_a_curve_that_leaves_its_panel_does_not_take_the_others_along(tmp_path, monkeypatch):
    from tensorlace_lab.pages import charts

    drawn = []
    monkeypatch.setattr(charts, "save", lambda figure, path: drawn.append(figure) or path)

    def cell(name, protocol, system, nll):
        metrics = {"nll": nll, "threshold": [1.0, 2.0], "largest": 4.0}
        return {"set": name, "protocol": protocol, "system": system, "metrics": metrics}

    records = [
        cell("yacht", "corrected", "LLA", [0.5, 1.0]),
        cell("yacht", "corrected", "LA", [4e4, 0.7]),
        cell("energy", "published", "LLA", [0.5, 1.0]),
    ]
    ablation.draw(records, tmp_path / "a.svg")
    limits = {p.get_title(): p.get_ylim() for p in drawn[0].axes}
    low, high = limits["yacht, corrected"]
    assert 0.2 < low < 0.5
    assert 5.5 < high < 6.0
    assert len(limits) == 4  # panels without a curve are drawn all the same


def test_findings_in_words():
    def record(name, lla, la, by_core):
        metrics = {"lla_ggn": lla, "la_ggn": la, "lla_last": by_core[-1]}
        return {"set": name, "metrics": {**metrics, "lla_by_core": by_core}}

    assert equal_size.findings([]) == ""
    said = equal_size.findings(
        [record("yacht", 0.5, 1.0, [2.0, 0.0]), record("wine", 0.5, -1.0, [0.7, 0.9])]
    )
    assert "(GGN) on 1 of 2 sets; Last is better than GGN on 1 of 2" in said
    assert "up to 2.00 (yacht)" in said


def test_complexity_counts_bytes():
    rows, cores = complexity.problem(N=300, D=3, I=4, R=2, seed=0)
    P = 3 * 4 * 2
    sizes = {"last": 8 * 8 * 8, "diag": 8 * P, "block": 3 * 8 * 8 * 8, "ggn": 8 * P * P}
    with rows:
        for name, size in sizes.items():
            bend = Last(-1) if name == "last" else CURVATURES[name]
            kept = complexity.stored_bytes(complexity._posterior(rows, cores, bend))
            assert kept == size, name
    seconds, peak = complexity.measure(lambda: np.zeros(100_000), 0.0)
    assert seconds >= 0
    assert 800_000 <= peak < 900_000


def test_commands_from_end_to_end(directory, tmp_path, capsys, monkeypatch):
    """Every experiment on a tiny set, the page last; then again, when nothing is left to do."""
    monkeypatch.setattr(published, "SIZES", (2,))
    monkeypatch.setattr(corrected, "STARTS", 1)
    monkeypatch.setattr(equal_size, "SWEEPS", 10)
    monkeypatch.setattr(equal_size.compare, "__defaults__", ((2, 3),))
    monkeypatch.setattr(ablation, "RANK", 2)
    monkeypatch.setattr(ablation.curve, "__kwdefaults__", {"linearized": True, "size": (2, 3)})
    monkeypatch.setattr(complexity, "QUICK", {"N": 64, "D": 2, "I": 2, "R": 1})
    monkeypatch.setattr(complexity, "FACTORS", (1, 2))
    results = tmp_path / "results"
    how = ["--quick", "--data", str(directory), "--results", str(results), "--splits", "1"]
    how += ["--jobs", "0"]
    names = [name for name in NAMES if name != "page"]
    assert main([*names, "page", *how]) == 0
    out = capsys.readouterr()
    assert "paper.html" in out.out
    assert "left" in out.err
    for name in names:
        assert len(Records(results / name)) > 0
        assert escape(experiment_named(name).title) in (results / "paper.html").read_text()
    page = (results / "paper.html").read_text()
    assert "published" in page
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    for figure in ("cubic", "linearization", "hessians"):
        assert (results / figure / f"{figure}.svg").exists()
    sizes = {path: path.stat().st_size for path in results.glob("*/*.jsonl")}
    assert main([*names, *how]) == 0
    assert sizes == {path: path.stat().st_size for path in results.glob("*/*.jsonl")}
    assert "1/" not in capsys.readouterr().err


def test_commands_refuse_nonsense(tmp_path, capsys):
    for argv in (["uci", "--splits", "0"], ["uci", "--sets", "mars"], ["uci", "--jobs", "-1"]):
        with pytest.raises(SystemExit):
            main(argv)
    how = ["--quick", "--splits", "1", "--protocol", "published"]  # in a process of its own
    assert main(["uci", *how, "--data", str(tmp_path), "--results", str(tmp_path)]) == 1
    assert "no yacht.csv in" in capsys.readouterr().err


@pytest.fixture
def made_up(tmp_path):
    """Records of three protocols on three sets and splits; each is one nat better than the last."""
    records = Records(tmp_path / "uci")
    rng = np.random.default_rng(0)
    for name in ("yacht", "wine", "energy"):
        for split in (1, 2, 3):
            for k, protocol in enumerate(("published", "corrected", "default")):
                scores = {"nll": -k + 0.01 * rng.standard_normal(), "rmse": 0.1, "rce": 0.1}
                scores |= {"ecp95": 0.95, "wcpi95": 1.0, "coverages": list(systems.LEVELS)}
                about = {"metrics": scores, "seconds": 1.0, "peak_mb": 2.0, "date": "2026-01-01"}
                cell = Cell("uci", name, split, "tnkm", protocol)
                records.add(cell, {**about, "versions": {"python": "3"}, "scale": 10.0})
    return records


def test_tables_and_page_of_made_up_records(made_up, tmp_path):
    table = tables.scores(list(made_up), ["yacht"], "nll")
    assert "| tensorlace | **-2." in table
    assert table.count("**") == 2
    original = tables.grouped(list(made_up), "nll", original=True)["yacht"]["tensorlace"][1]
    plain = tables.grouped(list(made_up), "nll")["yacht"]["tensorlace"][1]
    assert original == pytest.approx(plain + math.log(10.0))
    wide = tables.grouped(list(made_up), "rmse", original=True)["wine"]["tensorlace"][1]
    assert wide == pytest.approx(1.0)
    page, text = write(tmp_path, tmp_path / "docs.md")
    assert "Friedman" in page.read_text()
    for content in (page.read_text(), text.read_text()):
        assert "240 of the 1599 rows" in content
        assert "LA-TNKM, corrected" in content
        assert "NLL, original units" in content


def test_published_figures_beside_ours(made_up):
    assert "| yacht | 15.14 | +2.717 |" in beside.conversion(["yacht"])
    assert "0.10 → -2.62 |" in beside.conversion(["yacht"])
    rows = beside.published(list(made_up), ["yacht", "energy"]).splitlines()
    (ours,) = (row for row in rows if row.startswith("| LA-TNKM |"))
    assert "-0.52 / " in ours
    assert "-1.40 / " in ours
    assert any(row.startswith("| Exact GP | -2.62 / – |") for row in rows)
    reached = beside.reached(list(made_up), ["yacht", "wine"])
    assert "| no so far (3 of 5 splits) |" in reached  # 0 is not within 0.1 of -0.52
    assert "-1.0" in reached


def test_cells_of_the_quality_benchmark_are_read(made_up, tmp_path):
    row = {"set": "yacht", "split": 1, "nll": -3.0, "rmse": 0.02, "seconds": 9.0, "n_train": 277}
    row |= {"date": "2026-01-01", "python": "3.12", "versions": {"numpy": "2"}, "command": "c"}
    for name in ("tensorlace", "gp"):
        lines = [json.dumps({**row, "split": split}) for split in (1, 4)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    found = with_quality(list(made_up), tmp_path)
    assert len(found) == len(made_up) + 3  # split 1 of the default is there already
    nll = tables.grouped(found, "nll", original=True)["yacht"]
    assert nll["Exact GP"][1] == pytest.approx(-3.0 + math.log(10.0))  # scale of that split
    assert nll["tensorlace"][4] == pytest.approx(-3.0 + math.log(literature.STD["yacht"]))
    assert nll["tensorlace"][1] > -2.1 + math.log(10.0)


def test_markup_escapes():
    assert html_table("| a<b |\n| --- |\n| *x* |") == (
        '<div class="wide"><table><thead><tr><th>a&lt;b</th></tr></thead>'
        "<tbody><tr><td><em>x</em></td></tr></tbody></table></div>"
    )


def test_published_goes_on_where_rounding_makes_a_core_singular():
    G, b = np.outer([1.0, 2.0], [1.0, 2.0]), np.array([1.0, 2.0])
    np.testing.assert_allclose(published._solve(G, b), [0.2, 0.4], rtol=1e-14)
    np.testing.assert_array_equal(
        published._solve(G + np.eye(2), b), np.linalg.solve(G + np.eye(2), b)
    )
