"""Selection by cross-validation against fitting every combination by hand."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import RepeatedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import tensorlace
from tensorlace import InputError, TNKMRegressor, TNKMRegressorCV
from tensorlace.estimators.cv_folds import results_table
from tensorlace.estimators.cv_grid import SIZES, THRESHOLDS, Family, families, sizes_within
from tensorlace.laplace.curvature import GGN, BlockDiagonal, Diag, Last
from tensorlace.laplace.factorisation import Truncation, truncated
from tensorlace.laplace.posterior import Root
from tests.helpers.oracles import problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (90, 3))
Y = 5.0 + 3.0 * (X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.1 * RNG.standard_normal(90))
NEW = RNG.uniform(-2, 2, (20, 3))
CUTS = (1e-5, 30.0, 300.0)  # none, some and more of the eigenvalues
SMALL = {"ranks": (1, 3), "n_bases": (4,), "thresholds": CUTS}
SHORT = TNKMRegressor.paper(max_sweeps=6)


def by_hand(params, folds, **settings):
    """Mean log densities (folds,) of models fitted one by one."""
    size = (params["rank"], params["n_basis"], params["threshold"])
    scores = []
    for train, test in folds:
        paper = TNKMRegressor.paper(*size, random_state=7, **settings).fit(X[train], Y[train])
        scores.append(paper.predict_dist(X[test]).logpdf(Y[test]).mean())
    return scores


@pytest.fixture(scope="module")
def chosen():
    with pytest.warns(ConvergenceWarning):
        return TNKMRegressorCV(SHORT, **SMALL, random_state=7).fit(X, Y)


def test_scores_are_those_of_single_fits(chosen):
    folds = list(RepeatedKFold(n_splits=3, n_repeats=2, random_state=7).split(X))
    found = chosen.cv_results_
    assert len(found["params"]) == 2 * 3
    for k, params in enumerate(found["params"]):
        expected = by_hand(params, folds, max_sweeps=6)
        scores = [found[f"split{f}_test_score"][k] for f in range(6)]
        np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)
        assert found["mean_test_score"][k] == pytest.approx(np.mean(expected), rel=1e-10)
        assert found["std_test_score"][k] == pytest.approx(np.std(expected), rel=1e-8)
    best = int(np.argmax(found["mean_test_score"]))
    assert chosen.best_index_ == best
    assert found["rank_test_score"][best] == 1
    assert chosen.best_params_ == found["params"][best]
    assert chosen.best_score_ == found["mean_test_score"][best]
    # sharing a fit is not sharing the answer
    assert len(set(found["mean_test_score"])) == 2 * 3


def test_the_choice_is_fitted_to_all_rows(chosen):
    best = chosen.best_params_
    size = (best["rank"], best["n_basis"], best["threshold"])
    single = TNKMRegressor.paper(*size, random_state=7, max_sweeps=6).fit(X, Y)
    assert np.array_equal(chosen.predict(NEW), single.predict(NEW))
    for got, expected in zip(
        chosen.predict(NEW, return_std=True), single.predict(NEW, return_std=True), strict=True
    ):
        assert np.array_equal(got, expected)
    assert np.array_equal(chosen.predict_interval(NEW), single.predict_interval(NEW))
    assert np.array_equal(chosen.predict_quantiles(NEW), single.predict_quantiles(NEW))
    assert np.array_equal(chosen.sample_y(NEW, 3, 1), single.sample_y(NEW, 3, 1))
    assert chosen.noise_precision_ == chosen.best_estimator_.noise_precision_
    assert chosen.score(X, Y) == single.score(X, Y)


@pytest.mark.parametrize(
    ("single", "thresholds"),
    [
        ({"curvature": "full"}, CUTS),
        ({"curvature": "block", "relative_threshold": True}, (1e-6, 1e-2)),
        ({"predictive": "sampled", "n_draws": 5, "n_members": 2}, CUTS),
        ({"curvature": "ggn"}, (None, 0.5)),
    ],
    ids=["full", "relative", "sampled", "none"],
)
def test_other_ways_of_inference(single, thresholds):
    few = {"ranks": [2], "n_bases": [3], "thresholds": thresholds, "n_splits": 2, "n_repeats": 1}
    base = TNKMRegressor.paper(max_sweeps=8, **single)
    model = TNKMRegressorCV(base, **few, random_state=7, n_jobs=1).fit(X, Y)
    folds = list(RepeatedKFold(n_splits=2, n_repeats=1, random_state=7).split(X))
    for k, params in enumerate(model.cv_results_["params"]):
        scores = [model.cv_results_[f"split{f}_test_score"][k] for f in range(2)]
        np.testing.assert_allclose(
            scores, by_hand(params, folds, max_sweeps=8, **single), rtol=1e-8
        )


def test_threads_change_nothing_and_neither_do_names(chosen):
    frame = pd.DataFrame(X, columns=list("abc"))
    again = TNKMRegressorCV(SHORT, **SMALL, random_state=7, n_jobs=1).fit(frame, pd.Series(Y))
    for key in chosen.cv_results_.keys() - {"params", "mean_fit_time"}:
        assert np.array_equal(chosen.cv_results_[key], again.cv_results_[key])
    assert list(again.feature_names_in_) == list("abc")
    assert np.array_equal(chosen.predict(X), again.predict(frame))


def test_categories_and_missing_values():
    frame = pd.DataFrame({"x": X[:, 0], "shop": RNG.choice(["a", "b"], 90), "z": X[:, 2]})
    frame.loc[::7, "z"] = np.nan
    y = X[:, 0] + 2.0 * (frame["shop"] == "a")
    base = TNKMRegressor.paper(max_sweeps=10)
    model = TNKMRegressorCV(base, ranks=[2], n_bases=[3], random_state=0).fit(frame, y)
    assert model.score(frame, y) > 0.9


def test_several_curvatures():
    model = TNKMRegressorCV(
        TNKMRegressor.paper(max_sweeps=8),
        ranks=[2],
        n_bases=[3],
        thresholds=[1e-3],
        curvatures=["last", "ggn"],
        n_splits=2,
        n_repeats=1,
        random_state=None,
    ).fit(X, Y)
    assert list(model.cv_results_["param_curvature"]) == ["last", "ggn"]
    assert model.best_estimator_.curvature == model.best_params_["curvature"]


def test_progress_goes_to_standard_error(capsys):
    few = {"ranks": [1], "n_bases": [2], "n_splits": 2, "n_repeats": 1}
    base = TNKMRegressor.paper(max_sweeps=3)
    TNKMRegressorCV(base, **few, random_state=0, verbose=1).fit(X, Y)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"[tensorlace] fit {k}/2" for k in (1, 2)]
    assert "rank 1  n_basis 2  last  fold" in lines[0]


# the contract ------------------------------------------------------------------------------------

TINY = TNKMRegressorCV(
    TNKMRegressor.paper(max_sweeps=8),
    ranks=(1,),
    n_bases=(3,),
    thresholds=(1e-3,),
    n_splits=2,
    n_repeats=1,
    n_jobs=1,
)


@parametrize_with_checks([TINY])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_clone_is_not_fitted(chosen):
    copy = clone(chosen)
    assert repr(copy.get_params()) == repr(chosen.get_params())
    with pytest.raises(NotFittedError):
        copy.predict(X)


def test_the_class_is_imported_when_asked_for():
    code = (
        "import sys, tensorlace; assert 'tensorlace.estimators.regressor_cv' not in sys.modules; "
        "tensorlace.TNKMRegressorCV; assert 'tensorlace.estimators.regressor_cv' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "TNKMRegressorCV" in tensorlace.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tensorlace.nothing


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ranks": []}, r"ranks is \[\]: give one or more whole numbers"),
        ({"n_bases": [2, 0]}, r"n_bases is \[2, 0\]: give one or more whole numbers"),
        ({"thresholds": [-1.0]}, r"thresholds is \[-1.0\]: give one or more numbers"),
        ({"curvatures": ["last", "first"]}, "curvatures is .*: choose from block, diag, full, ggn"),
        ({"n_splits": 46}, "n_splits=46 but n_samples=90: give at least 92 rows, or fewer"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        TNKMRegressorCV(**settings).fit(X, Y)


def test_arguments_of_the_model_go_to_the_estimator():
    with pytest.raises(TypeError, match=r"warp, tol: .*\(TNKMRegressor.paper\(warp=..., tol=...\)"):
        TNKMRegressorCV(warp="minmax", tol=1e-3)
    with pytest.raises(TypeError, match="curvature: give curvatures"):
        TNKMRegressorCV(curvature="ggn")
    with pytest.raises(TypeError, match="unexpected keyword argument 'rank_'"):
        TNKMRegressorCV(rank_=3)
    model = TNKMRegressorCV(TNKMRegressor.paper())
    assert model.set_params(estimator__tol=0.5).estimator.tol == 0.5


def test_the_estimator_given_is_left_alone(chosen):
    assert not hasattr(SHORT, "model_")
    assert SHORT.get_params() == TNKMRegressor.paper(max_sweeps=6).get_params()
    assert chosen.best_estimator_.max_sweeps == 6


def test_what_the_best_estimator_can_do_is_here_too(chosen):
    """Whatever a fitted TNKMRegressor offers, but for ways to make or fit one."""
    best = chosen.best_estimator_
    for name in dir(best):
        if not name.startswith("_") and name not in ("paper", "fit_rows", "set_fit_request"):
            assert hasattr(chosen, name) or name in best.get_params(), name
    assert np.array_equal(chosen.relevance_, best.relevance_)
    assert chosen.n_features_in_ == 3
    assert not hasattr(chosen, "feature_names_in_")
    again = chosen.with_model(chosen.model_).calibrate(X[:40], Y[:40])
    assert again.calibration_ is not None
    assert chosen.calibration_ is None


# the grid ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("N", "D", "options"),
    [(308, 6, 30), (506, 13, 30), (768, 8, 51), (1030, 8, 63), (9568, 4, 93), (11934, 16, 36)],
    ids=["yacht", "boston", "energy", "concrete", "power", "naval"],
)
def test_the_papers_grid_has_the_papers_size(N, D, options):
    sizes = sizes_within(SIZES, SIZES, D, int(0.9 * N))
    grid = families(sizes, THRESHOLDS, ["last"])
    assert sum(len(family.members()) for family in grid) == options
    assert len(grid) == options // 3  # one fit each


def test_who_shares_a_fit():
    sizes = [(2, 3), (2, 3), (4, 3)]
    assert families(sizes, [0.1, 1e-3], ["last"]) == [
        Family(2, 3, "last", (1e-3, 0.1)),
        Family(4, 3, "last", (1e-3, 0.1)),
    ]
    assert [f.thresholds for f in families([(1, 1)], [1e-3, None, 0.1], ["full"])] == [
        (1e-3,),
        (0.1,),
        (None,),
    ]
    assert sizes_within([8, 2], [4], 3, 5, None) == [(8, 4), (2, 4)]


def test_a_score_that_is_none_is_never_the_best():
    grid = [Family(1, 2, "last", (0.1,)), Family(2, 2, "last", (0.1,))]
    done = {(0, 0): (np.array([np.nan]), 1.0), (1, 0): (np.array([-5.0]), 1.0)}
    assert list(results_table(grid, done)["rank_test_score"]) == [2, 1]


# cutting again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
@pytest.mark.parametrize("curvature", [GGN(), BlockDiagonal(), Diag(), Last(1)], ids=repr)
def test_cutting_again_is_cutting_at_once(curvature, relative):
    p = problem(2, D=3, R=2, N=60)
    with p.rows() as rows:
        stat = curvature.evaluate(rows, p.network, None)
    size = sum(p.cores[d].size for d in curvature.bayesian_cores(len(p.cores)))
    gamma = np.full(size, 0.3)
    first = stat.posterior(p.beta, gamma, Truncation(0.0, relative))
    dropped = []
    for threshold in np.geomspace(1e-4, 1.1, 9) * (1.0 if relative else 100.0):
        once = stat.posterior(p.beta, gamma, Truncation(threshold, relative))
        again = truncated(first, Truncation(threshold, relative))
        assert again.n_dropped == once.n_dropped
        assert again.logdet == pytest.approx(once.logdet, rel=1e-14, abs=1e-14)
        np.testing.assert_allclose(
            again.solve(np.eye(size)), once.solve(np.eye(size)), rtol=1e-12, atol=1e-14
        )
        dropped.append(once.n_dropped)
    assert dropped[0] < dropped[-1]
    assert dropped[-1] == size or not relative


def test_only_eigenvectors_can_be_cut():
    with pytest.raises(ValueError, match="knows no eigenvalues"):
        truncated(Root(np.eye(2), 0.0), Truncation(1.0))


def test_a_threshold_leaves_the_mean_alone_and_only_lowers_the_variance():
    dists = [
        TNKMRegressor.paper(3, 4, t, random_state=0).fit(X, Y).predict_dist(NEW)
        for t in (None, 1e-5, 1e-1, 10.0, 1e3)
    ]
    for wide, narrow in pairwise(dists):
        np.testing.assert_array_equal(wide.mean, narrow.mean)
        assert np.all(narrow.std <= wide.std * (1 + 1e-9))
    assert np.all(dists[-1].std < dists[0].std)
