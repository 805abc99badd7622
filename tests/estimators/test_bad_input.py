"""What cannot be fitted is refused in one line that names it; what looks odd but can be, works."""

import time
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tensorlace import (
    Categorical,
    Datetime,
    InputError,
    Numeric,
    Ordinal,
    Periodic,
    SizeError,
    TensorlaceError,
    TNKMRegressor,
)
from tensorlace.fitting.config import Config

N, D = 50, 3


def problem(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=N)


X, Y = problem()


def model(**settings):
    return TNKMRegressor(**{"rank": 2, "random_state": 0, **settings})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y)


@pytest.fixture(scope="module")
def named():
    return model().fit(pd.DataFrame(X, columns=list("abc")), Y)


def changed(A, where, value):
    A = A.copy()
    A[where] = value
    return A


def refuses(call, *parts, kind=InputError):
    """``call`` raises ``kind`` with one line that contains all the parts."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message
    assert isinstance(caught.value, ValueError)
    assert kind is ValueError or isinstance(caught.value, TensorlaceError)


# values ------------------------------------------------------------------------------------------

NOT_FINITE = [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]


@pytest.mark.parametrize(("value", "name"), NOT_FINITE)
def test_target_that_is_not_finite(value, name):
    bad = changed(Y, [7, 9], value)
    parts = ("Input y", name, "row 7", "2 such values", "drop these rows")
    refuses(lambda: model().fit(X, bad), *parts)
    refuses(lambda: model().fit(X, pd.Series(bad)), *parts)
    refuses(lambda: model().fit(X, pl.Series(bad)), *parts)
    refuses(lambda: model().fit(X, bad.tolist()), *parts)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_table_that_is_not_finite(fitted, named, value):
    bad = changed(changed(X, ([4, 8], [1, 2]), value), (2, 0), np.nan)  # NaN is no offence
    parts = ("Input X", "infinity", "column 1, row 4", "2 such values", "drop these", "missing")
    refuses(lambda: model().fit(bad, Y), *parts)
    refuses(lambda: fitted.predict(bad), *parts)
    for frame in (pd.DataFrame(bad, columns=list("abc")), pl.DataFrame(bad, schema=list("abc"))):
        parts = ("Input X", "infinity", "column 'b', row 4")
        refuses(lambda frame=frame: model().fit(frame, Y), *parts)
        for method in ("predict", "predict_dist", "sample_y", "extrapolated", "predict_interval"):
            refuses(lambda frame=frame, method=method: getattr(named, method)(frame), *parts)


def test_missing_targets_of_every_kind():
    b = [None if k == 3 else float(v) for k, v in enumerate(X[:, 1])]
    for target in (b, pl.Series(b), pd.Series(b, dtype="Float64")):
        refuses(lambda target=target: model().fit(X, target), "Input y", "NaN in row 3")


TEXT = ["x" if k == 5 else str(k) for k in range(N)]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": X[:, 0], "b": TEXT}),
        pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(TEXT)}),
        pd.DataFrame({"a": X[:, 0], "b": pd.Series(TEXT, dtype=object)}),
        pd.DataFrame({"a": X[:, 0], "b": pd.Series(TEXT, dtype="string")}),
        pl.DataFrame({"a": X[:, 0], "b": TEXT}),
        pl.DataFrame({"a": X[:, 0], "b": pl.Series(TEXT, dtype=pl.Categorical)}),
    ],
    ids=["pandas", "categorical", "object", "string", "polars", "polars categorical"],
)
def test_text_in_a_frame(frame):
    refuses(
        lambda: model().fit(frame, Y),
        *("column 'b' is text with 50 distinct values in 50 rows", "drop the column", "Numeric()"),
    )
    parts = ("column 'b' is not numeric", "row 5 has 'x'", "Categorical()")
    refuses(lambda: model(columns={"b": Numeric()}).fit(frame, Y), *parts)
    clean = model().fit(pd.DataFrame({"a": X[:, 0], "b": X[:, 1]}), Y)
    refuses(lambda: clean.predict(frame), *parts)


def test_text_in_an_array(fitted):
    mixed, text = (changed(X.astype(kind), (4, 1), "x") for kind in (object, "U32"))
    refuses(lambda: model().fit(mixed, Y), "column 1 is text with 50 distinct values in 50 rows")
    refuses(lambda: model().fit(text, Y), "column 0 is text with 50 distinct values in 50 rows")
    numbers = dict.fromkeys(range(D), Numeric())
    for array in (mixed, text, text.tolist()):
        parts = ("column 1 is not numeric", "row 4 has 'x'")
        refuses(lambda array=array: model(columns=numbers).fit(array, Y), *parts)
        refuses(lambda array=array: fitted.predict(array), *parts)


def test_too_many_categories():
    codes = np.arange(1002) // 2
    frame = pd.DataFrame({"shop": codes[: 2 * N].astype(str)})
    assert model(max_sweeps=1, tol=1e9).fit(frame, codes[: 2 * N]).kinds_ == {"shop": Categorical()}
    few = ("column 'shop' is text with 50 distinct values in 99 rows", "merge rare")
    refuses(lambda: model().fit(frame[:-1], codes[: 2 * N - 1]), *few)
    many = pd.DataFrame({"shop": pd.Categorical(codes)})
    refuses(
        lambda: model().fit(many, codes),
        "column 'shop' is categories with 501 distinct values in 1002 rows",
    )


def test_objects_that_are_no_values(fitted):
    for value in ({"a": 1}, object()):
        for call in (lambda Z: model().fit(Z, Y), fitted.predict):
            with pytest.raises(TypeError, match=r"column 1, row 4: float\(\) argument must be"):
                call(changed(X.astype(object), (4, 1), value))


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ({"bb": Numeric()}, ("columns['bb']", "3 columns", "did you mean 'b'?")),
        ({"zebra": Numeric()}, ("columns['zebra']", "name or a position")),
        ({3: Numeric()}, ("columns[3]", "3 columns", "position")),
        ({-4: Numeric()}, ("columns[-4]", "3 columns", "position")),
        ({0: Numeric(), "a": Periodic(7)}, ("columns['a']", "named twice")),
        ({"a": Categorical}, ("columns['a'] is Categorical", "Categorical()")),
        ({"a": "numeric"}, ("columns['a'] is 'numeric'", "Periodic(24)")),
        ({"a": Datetime()}, ("column 'a' is not dates but float64", "leave Datetime() out")),
        ({"a": Ordinal([1, 2])}, ("column 'a': row 0", "not in the order", "add it")),
        ({"c": Categorical()}, ("column 'c' is categories with 50 distinct values",)),
    ],
)
def test_kinds_that_do_not_fit_the_table(columns, parts):
    refuses(lambda: model(columns=columns).fit(pd.DataFrame(X, columns=list("abc")), Y), *parts)


def test_kinds_that_make_no_sense():
    for period in (0.0, -7, np.nan, np.inf):
        refuses(lambda period=period: Periodic(period), "Periodic", "positive number")
    for order in ([], ["a"], ["a", "b", "a"], "abc"):
        refuses(lambda order=order: Ordinal(order), "Ordinal", "each of them once")


def test_text_in_the_target():
    parts = ("Input y is not numeric", "row 4 has 'x'")
    refuses(lambda: model().fit(X, changed(Y.astype(object), 4, "x")), *parts)
    refuses(lambda: model().fit(X, changed(Y.astype("U32"), 4, "x")), *parts)
    refuses(lambda: model().fit(X, pl.Series(changed(Y.astype("U32"), 4, "x"))), *parts)


def test_text_that_is_no_date():
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": ["28.2.26" if k == 5 else "2026-02-28" for k in range(N)]}
    )
    parts = ("column 'b' is not dates: row 5 has '28.2.26'", "like 2026-02-28")
    refuses(lambda: model(columns={"b": Datetime()}).fit(frame, Y), *parts)


def test_sources_are_numbers(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": X[:, 0], "y": Y}).to_csv(path, index=False)
    for kind in (Datetime(), Ordinal([1, 2])):
        refuses(
            lambda kind=kind: model(columns={"a": kind}).fit_rows(path, "y"),
            *(f"column 'a' cannot be {type(kind).__name__}", "table of numbers", "data frame"),
        )


def test_numbers_of_other_kinds_are_numbers():
    flags, whole = X[:, 0] > 0, np.arange(N)
    loose = model(tol=1.0, columns={"b": Numeric()})
    arrays = model(tol=1.0).fit(np.column_stack([flags, whole]).astype(float), Y)
    expected = arrays.predict([[1.0, 3.0]])
    for kind, b in [
        (pd.DataFrame, whole),
        (pd.DataFrame, pd.array(whole, dtype="Int64")),
        (pd.DataFrame, whole.astype(str)),
        (pd.DataFrame, whole.astype(object)),
        (pd.DataFrame, pd.Categorical(whole)),
        (pl.DataFrame, whole),
        (pl.DataFrame, whole.astype(str)),
        (pl.DataFrame, pl.Series(whole, dtype=pl.UInt8)),
        (pl.DataFrame, pl.Series(whole, dtype=pl.Decimal(10, 2))),
    ]:
        predicted = loose.fit(kind({"a": flags, "b": b}), Y).predict(kind({"a": [True], "b": [3]}))
        assert np.array_equal(predicted, expected)


def test_complex_numbers():
    for args in ((X + 1j, Y), (X, Y + 1j)):
        with pytest.raises(ValueError, match="Complex data not supported"):
            model().fit(*args)


# shapes ------------------------------------------------------------------------------------------


def test_wrong_number_of_columns(fitted):
    for method in ("predict", "predict_dist", "sample_y", "extrapolated"):
        refuses(
            lambda method=method: getattr(fitted, method)(X[:, :2]),
            *("X has 2 features", "expecting 3 features"),
            kind=ValueError,
        )


def test_too_few_rows(fitted):
    for n in (0, 1):
        refuses(
            lambda n=n: model().fit(X[:n], Y[:n]),
            *(f"{n} sample(s)", "minimum of 2 is required"),
            kind=ValueError,
        )
    refuses(lambda: fitted.predict(X[:0]), "0 sample(s)", "minimum of 1", kind=ValueError)
    refuses(lambda: model().fit(X[:, :0], Y), "0 feature(s)", "minimum of 1", kind=ValueError)
    assert fitted.predict(X[:1]).shape == (1,)
    refuses(lambda: model().fit(X, Y[:-1]), "inconsistent numbers of samples", kind=ValueError)
    refuses(lambda: model().fit(X, None), "requires y to be passed", "y is None")
    with pytest.raises(ValueError, match="should be a 1d array"):
        model().fit(X, np.column_stack([Y, Y]))


def test_two_rows_are_enough():
    mean, std = model().fit(X[:2], Y[:2]).predict(X, return_std=True)
    assert np.allclose(mean[:2], Y[:2], atol=0.1 * np.ptp(Y[:2]))
    assert np.all(np.isfinite(mean))
    assert np.all(std > np.ptp(Y[:2]))  # which two rows know next to nothing of


def test_fewer_rows_than_weights():
    few = model(rank=4).fit(X[:8], Y[:8])  # 72 weights
    mean, std = few.predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)
    epistemic = few.predict_dist(X).epistemic_stds[0]
    assert np.mean(epistemic[8:]) > 1.5 * np.mean(epistemic[:8])  # it knows where it saw nothing
    # with a prior and a noise level of its own it is a kernel machine: solved in N dimensions
    known = model(rank=4, noise_precision=100.0, prior_precision=1.0).fit(X[:8], Y[:8])
    assert np.all(known.predict_dist(X).std >= 0.1)
    assert known.score(X[:8], Y[:8]) > 0.9


# columns that carry nothing, or nothing new ------------------------------------------------------


@pytest.mark.parametrize(
    ("basis", "warp"), [("cosine", "mixed"), ("bspline", "quantile"), ("chebyshev", "standardise")]
)
def test_constant_column(basis, warp):
    """It gets the smallest basis, and whatever is predicted there is the same."""
    Z = np.column_stack([X[:, 0], np.full(N, 3.0), X[:, 1]])
    machine = model(basis=basis, warp=warp).fit(Z, Y)
    assert machine.machines_[0].columns.sizes == (6, 4 if basis == "bspline" else 1, 6)
    assert machine.score(Z, Y) > 0.9
    assert not machine.extrapolated(Z).any()
    moved = changed(Z, (slice(None), 1), 99.0)
    assert machine.extrapolated(moved).all()
    for a, b in zip(
        machine.predict(Z, return_std=True), machine.predict(moved, return_std=True), strict=True
    ):
        assert np.array_equal(a, b)


def test_only_constant_columns():
    machine = model().fit(np.ones((N, 2)), Y)
    mean, std = machine.predict(np.ones((1, 2)), return_std=True)
    assert mean == pytest.approx(Y.mean(), abs=1e-3)
    assert std == pytest.approx(Y.std(), rel=0.05)


def test_duplicate_columns():
    twice = model().fit(X[:, [0, 0, 1]], Y)
    mean, std = twice.predict(X[:, [0, 0, 1]], return_std=True)
    assert twice.score(X[:, [0, 0, 1]], Y) > 0.95
    assert np.all((std > 0) & (std < 1))
    assert np.all(np.isfinite(mean))


@pytest.mark.parametrize("value", [0.0, 7.0, -1e300, 1e-300])
@pytest.mark.parametrize(
    "settings",
    [{}, {"solver": "als"}, {"curvature": "last"}, {"noise_precision": "vi"}, {"n_members": 2}],
)
def test_all_targets_equal(value, settings):
    machine = model(**settings).fit(X, np.full(N, value))
    mean, std = machine.predict(problem(1)[0], return_std=True)
    assert np.array_equal(mean, np.full(N, value))
    assert np.array_equal(machine.predict(X), np.full(N, value))
    assert np.all(std > 0)
    assert np.isfinite(machine.log_evidence_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_all_targets_equal_for_the_paper():
    machine = TNKMRegressor.paper(2, 3, 1e-3, random_state=0).fit(X, np.full(N, 7.0))
    assert np.array_equal(machine.predict(X), np.full(N, 7.0))


# weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"basis": "chebyshev", "warp": "minmax"}, {"solver": "als", "tol": 1e-2}]
)
@pytest.mark.parametrize("size", [1e6, 1e300])
def test_weight_zero_removes_a_row(settings, size):
    """Neither ranges nor quantiles nor sums may see it."""
    gone = [3, 10, 49]
    weight = changed(np.ones(N), gone, 0.0)
    a = model(**settings).fit(changed(X, gone, size), changed(Y, gone, -size), sample_weight=weight)
    b = model(**settings).fit(X[weight > 0], Y[weight > 0])
    for one, other in zip(
        a.predict(X, return_std=True), b.predict(X, return_std=True), strict=True
    ):
        assert np.array_equal(one, other)


def test_bad_weights():
    def fit(weight):
        return lambda: model().fit(X, Y, sample_weight=weight)

    refuses(fit(changed(np.ones(N), [6, 8], -2.0)), "sample_weight is -2 in row 6", "0 or more")
    refuses(fit(changed(np.ones(N), 6, np.nan)), "sample_weight is nan in row 6", "0 or more")
    refuses(fit(changed(np.ones(N), 6, np.inf)), "sample_weight is inf in row 6", "0 or more")
    refuses(fit(np.zeros(N)), "sample_weight is zero in all 50 rows")
    refuses(fit(np.ones(N - 1)), "sample_weight.shape == (49,)", kind=ValueError)


def test_weight_on_one_row_only():
    alone = np.arange(N) == 4
    refuses(lambda: model().fit(X, Y, sample_weight=alone), "the table has 1 row", "at least 2")


# sizes and settings ------------------------------------------------------------------------------

HUGE = [
    ({"rank": 10**9}, "rank=1000000000"),
    ({"rank": 10**9, "solver": "als", "curvature": "diag"}, "Gram matrix of the largest core"),
    ({"rank": 10**9, "n_members": 3}, "18,000,000,000 weights"),
    ({"n_basis": 10**6}, "4000 basis functions"),  # as many as there are values
    ({"n_basis": [3, 10**6, 3], "solver": "als", "curvature": "last"}, "4000 basis functions"),
    ({"n_basis": 10**6, "basis": "bspline"}, "product closure of the largest basis"),
    ({"n_basis": 10**6, "basis": "unit_polynomial", "warp": "standardise"}, "closure"),
]


@pytest.mark.parametrize(("settings", "part"), HUGE)
def test_models_that_memory_cannot_hold(settings, part):
    Z = np.random.default_rng(0).normal(size=(4000, D))
    tracemalloc.start()
    start = time.perf_counter()
    refuses(
        lambda: model(**settings).fit(Z, Z[:, 0]),
        *(part, "needs about", "GB", "lower rank"),
        kind=SizeError,
    )
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 20.0
    assert peak < 2e6  # bytes: refused before anything was allocated


def test_many_categories_that_memory_cannot_hold():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(10_000, 2))  # each value a category of its own
    refuses(lambda: model(basis="indicator").fit(Z, Z[:, 0]), "10000 basis", "GB", kind=SizeError)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"n_basis": [3, 4]}, ("n_basis has 2 entries", "X has 3 columns", "one per column")),
        ({"basis": ["cosine"]}, ("basis has 1 entries", "X has 3 columns")),
        ({"warp": ("mixed",) * 4}, ("warp has 4 entries", "X has 3 columns")),
        ({"n_basis": [3, 4, 0]}, ("n_basis must be whole numbers of at least 1", "[3, 4, 0]")),
        ({"n_basis": [3, 4.5, 3]}, ("n_basis must be whole numbers", "[3, 4.5, 3]")),
        ({"basis": ["cosine", "cosin", "sine"]}, ("basis 'cosin' is not known", "chebyshev")),
        ({"warp": ["mixed", "mix", "mixed"]}, ("warp 'mix' is not known", "quantile")),
        (
            {"curvature": "last", "core": 3},
            ("core=3 does not exist", "3 columns", "-1 is the last"),
        ),
        ({"curvature": "last", "core": -4}, ("core=-4 does not exist", "3 columns")),
        ({"warp": "standardise"}, ("column 0: the cosine basis", "Standardise", "MinMax")),
        (
            {"warp": ["mixed", "identity", "mixed"]},
            ("column 1: the cosine basis lives on [0, 1]", "Identity", "Chebyshev"),
        ),
        ({"basis": "bspline", "n_basis": 3}, ("column 0: the bspline basis", "at least 4")),
    ],
)
def test_settings_that_do_not_fit_the_table(settings, parts):
    refuses(lambda: model(**settings).fit(X, Y), *parts)


def test_settings_name_the_column_of_a_frame():
    frame = pd.DataFrame(X, columns=list("abc"))
    warp = ["mixed", "standardise", "mixed"]
    refuses(lambda: model(warp=warp).fit(frame, Y), "column 'b': the cosine basis")


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"rank": -1}, "'rank'"),
        ({"n_basis": 0}, "'n_basis'"),
        ({"basis": "cosin"}, "'basis'"),
        ({"solver": "adam"}, "'solver'"),
        ({"curvature": "kfac"}, "'curvature'"),
        ({"noise_precision": 0.0}, "'noise_precision'"),
        ({"prior_precision": -1.0}, "'prior_precision'"),
        ({"n_members": 0}, "'n_members'"),
        ({"threshold": -1.0}, "'threshold'"),
        ({"max_sweeps": 0}, "'max_sweeps'"),
    ],
)
def test_settings_out_of_range(settings, part):
    refuses(lambda: model(**settings).fit(X, Y), part, "TNKMRegressor", kind=ValueError)


def test_noise_precision_that_no_float_can_hold():
    parts = ("noise_precision=1 is out of range", "standard deviation", "rescale y")
    refuses(lambda: model(noise_precision=1.0).fit(X, 1e200 * Y), *parts)
    refuses(lambda: model(noise_precision=1.0).fit(X, 1e-200 * Y), *parts)


def test_levels_out_of_range(fitted):
    refuses(lambda: fitted.predict_interval(X, coverage=1.5), "coverage", "(0, 1)", "1.5")
    refuses(lambda: fitted.predict_quantiles(X, [0.5, 1.2]), "q must be", "[0, 1]", "1.2")


def test_the_number_of_rows_alone_is_never_too_large():
    """Rows are streamed: only the size of the model decides."""
    params = {**TNKMRegressor(solver="als", curvature="last").get_params(), "rank": 20}
    Config.of(params, 8).for_table((40,) * 8, n_rows=10**12, target_scale=1.0)
