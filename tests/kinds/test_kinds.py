"""Columns as they come: what the estimator makes of frames, categories, dates and gaps."""

import datetime
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from tensorlace import (
    Categorical,
    Datetime,
    InputError,
    Numeric,
    Ordinal,
    Periodic,
    SourceError,
    TNKMRegressor,
)
from tensorlace.columns.bases import Cosine, Fourier, Levels, Missing
from tensorlace.columns.encoding import Encoding, RawColumn
from tensorlace.kinds import infer_kind, is_missing
from tensorlace.sources import ArraySource

N = 240
SHOPS = ("a", "b", "c")
START = np.datetime64("2024-03-01T12:00", "us")


def problem(n=N, seed=0):
    """Values of five columns, and a target that needs each of them."""
    rng = np.random.default_rng(seed)
    shop = np.array(SHOPS)[rng.integers(0, 3, n)]
    hour = rng.integers(0, 24, n)
    when = START + rng.integers(0, 90 * 24 * 60, n) * np.timedelta64(60_000_000, "us")
    when[0] = START
    flag = rng.random(n) < 0.4
    size = rng.normal(size=n)
    days = (when - START) / np.timedelta64(1, "D")
    y = (
        (shop == "a") * (1.0 + size)
        - 0.5 * (shop == "b")
        + np.sin(2 * np.pi * hour / 24)
        + 0.02 * days
        + 0.3 * flag
        + 0.05 * rng.standard_normal(n)
    )
    return {"shop": shop, "hour": hour, "when": when, "flag": flag, "size": size}, y


DATA, Y = problem()
HOUR = {"hour": Periodic(24)}


def model(**settings):
    return TNKMRegressor(
        **{"rank": 4, "tol": 1e-4, "random_state": 0, "columns": HOUR, "n_jobs": 1, **settings}
    )


def in_pandas(data):
    return pd.DataFrame(data)


def in_pandas_extensions(data):
    return pd.DataFrame(
        {
            "shop": pd.Series(data["shop"], dtype="string"),
            "hour": pd.Series(data["hour"], dtype="Int16"),
            "when": pd.Series(data["when"]).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "flag": pd.Series(data["flag"], dtype="boolean"),
            "size": pd.Series(data["size"], dtype="Float64"),
        }
    )


def in_pandas_arrow(data):
    frame = pd.DataFrame(data)
    return frame.convert_dtypes(dtype_backend="pyarrow")


def in_pandas_objects(data):
    return pd.DataFrame(
        {name: pd.Series(list(values), dtype=object) for name, values in data.items()}
    )


def in_pandas_category(data):
    return pd.DataFrame(data).astype({"shop": "category"})


def in_polars(data):
    return pl.DataFrame(data)


def in_polars_categorical(data):
    return pl.DataFrame(data).with_columns(pl.col("shop").cast(pl.Categorical))


def in_polars_enum(data):
    return pl.DataFrame(data).with_columns(pl.col("shop").cast(pl.Enum(["c", "b", "a", "z"])))


def in_objects(data):
    return np.array(list(zip(*(v.tolist() for v in data.values()), strict=True)), dtype=object)


FRAMES = [
    *(in_pandas, in_pandas_extensions, in_pandas_arrow, in_pandas_objects, in_pandas_category),
    *(in_polars, in_polars_categorical, in_polars_enum),
]


@pytest.fixture(scope="module")
def reference():
    return model().fit(in_pandas(DATA), Y)


def test_kinds_are_inferred_and_learned_from(reference):
    kinds = [Categorical(), Periodic(24), Datetime(), Numeric(), Numeric()]
    assert reference.kinds_ == dict(zip(DATA, kinds, strict=True))
    bases = [c.basis for c in reference.machines_[0].columns.columns]
    assert bases[:2] == [Levels(4), Fourier(6)]
    assert [b.n for b in bases[2:]] == [6, 2, 6]
    new, y = problem(100, seed=1)
    assert reference.score(in_pandas(new), y) > 0.98


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_says_the_same(reference, frame):
    other = model().fit(frame(DATA), Y)
    new = problem(20, seed=1)[0]
    assert other.kinds_ == reference.kinds_
    expected = reference.predict(in_pandas(new), return_std=True)
    for a, b in zip(other.predict(frame(new), return_std=True), expected, strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(reference.predict(frame(new), return_std=True), expected, strict=True):
        assert np.array_equal(a, b)


def test_arrays_of_objects_are_tables_too(reference):
    array = in_objects(DATA)
    other = model(columns={1: Periodic(24)}).fit(array, Y)
    assert list(other.kinds_.values()) == list(reference.kinds_.values())
    assert np.array_equal(other.predict(array), reference.predict(in_pandas(DATA)))
    assert np.array_equal(other.predict(array.tolist()), other.predict(array))
    assert np.array_equal(other.predict([tuple(row) for row in array]), other.predict(array))


def test_arrays_of_strings_are_categories():
    text = np.column_stack([DATA["shop"], DATA["flag"].astype(str)])
    codes = np.column_stack([np.searchsorted(SHOPS, DATA["shop"]), DATA["flag"]])
    a = model(columns=None).fit(text, Y)
    b = model(columns={0: Categorical(), -1: Categorical()}).fit(codes, Y)
    assert a.kinds_ == b.kinds_ == {"column 0": Categorical(), "column 1": Categorical()}
    assert np.array_equal(a.predict(text), b.predict(codes))
    assert not b.extrapolated(codes).any()
    assert b.extrapolated([[3, 0], [1, 2]]).all()


def test_arrays_of_dates():
    dates = DATA["when"][:, None]
    days = (dates - dates.min()) / np.timedelta64(1, "D")
    a, b = model(columns=None).fit(dates, Y), model(columns=None).fit(days, Y)
    assert a.kinds_ == {"column 0": Datetime()}
    assert np.array_equal(a.predict(dates), b.predict(days))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(N) * np.timedelta64(36, "h"),
        pd.Series(np.arange(N) * np.timedelta64(36, "h")),
        pl.Series(np.arange(N) * np.timedelta64(36 * 3600 * 10**6, "us")),
    ],
    ids=["numpy", "pandas", "polars"],
)
def test_spans_of_time_are_days(values):
    frame = (pl if isinstance(values, pl.Series) else pd).DataFrame({"age": values})
    a = model(columns=None).fit(frame, Y)
    b = model(columns=None).fit(pd.DataFrame({"age": 1.5 * np.arange(N)}), Y)
    assert a.kinds_ == b.kinds_ == {"age": Numeric()}
    assert np.array_equal(a.predict(frame), b.predict(pd.DataFrame({"age": 1.5 * np.arange(N)})))


@pytest.mark.parametrize(
    "dates",
    [
        DATA["when"].astype("datetime64[D]").astype(str),
        [d.date() for d in DATA["when"].tolist()],
        pd.Series(DATA["when"]).dt.to_period("D"),
        pl.Series(DATA["when"]).cast(pl.Date),
    ],
    ids=["text", "objects", "periods", "polars"],
)
def test_dates_of_other_types(dates):
    frame = (pl if isinstance(dates, pl.Series) else pd).DataFrame({"when": dates})
    found = model(columns={"when": Datetime()}).fit(frame, Y)
    days = DATA["when"].astype("datetime64[D]")
    days = (days - days.min()).astype(float)[:, None]
    assert np.array_equal(found.predict(frame), model(columns=None).fit(days, Y).predict(days))


def test_ordinal():
    order = ["low", "mid", "high"]
    codes = np.random.default_rng(0).integers(0, 3, N)
    text = pd.DataFrame({"grade": np.array(order)[codes]})
    a = model(columns={"grade": Ordinal(order)}).fit(text, Y)
    b = model(columns=None).fit(pd.DataFrame({"grade": codes}), Y)
    assert a.machines_[0].columns.columns[0].basis == Cosine(3, lengthscale=0.5)
    assert np.array_equal(a.predict(text), b.predict(pd.DataFrame({"grade": codes})))
    with pytest.raises(InputError, match="column 'grade': row 0 has 'top', which is not in"):
        a.predict(pd.DataFrame({"grade": ["top"]}))
    assert a.extrapolated(pd.DataFrame({"grade": [None, "low"]})).tolist() == [True, False]


def test_periodic_column_is_one(reference):
    frame = in_pandas(DATA)
    later = frame.assign(hour=frame["hour"] + 24 * 365)
    assert np.allclose(reference.predict(later), reference.predict(frame), rtol=1e-12)
    assert not reference.extrapolated(later).any()


def test_numbers_that_are_names():
    """Any order of categories is as good: their numbers carry nothing."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, N)
    y = np.array([3.0, -2.0, 5.0, 0.0, 1.0, -4.0])[codes] + 0.1 * rng.standard_normal(N)
    X = np.column_stack([codes, rng.normal(size=N)])
    a = model(columns={0: Categorical()}).fit(X, y)
    assert a.score(X, y) > 0.99
    shuffled = np.array([2, 5, 0, 3, 1, 4])[codes]
    Z = np.column_stack([shuffled, X[:, 1]])
    assert model(columns={0: Categorical()}, random_state=1).fit(Z, y).score(Z, y) > 0.99


# missing values ----------------------------------------------------------------------------------


def with_gaps(data, y, seed=2, share=0.15):
    """The same table with values missing in each column, as None in lists."""
    rng = np.random.default_rng(seed)
    return {
        name: [None if rng.random() < share else v for v in values.tolist()]
        for name, values in data.items()
    }


GAPS = with_gaps(DATA, Y)


def gaps_in_pandas(data):
    return pd.DataFrame(data)


def gaps_in_pandas_extensions(data):
    kinds = {"shop": "string", "hour": "Int64", "flag": "boolean", "size": "Float64"}
    return pd.DataFrame(
        {name: pd.array(values, dtype=kinds.get(name)) for name, values in data.items()}
    )


def gaps_in_pandas_objects(data):
    """None, NaN, NA and NaT in turn."""
    kinds = [None, np.nan, pd.NA, pd.NaT]
    return pd.DataFrame(
        {
            name: pd.Series(
                [kinds[k % 4] if v is None else v for k, v in enumerate(values)], dtype=object
            )
            for name, values in data.items()
        }
    )


def gaps_in_pandas_category(data):
    return pd.DataFrame(data).astype({"shop": "category"})


def gaps_in_polars(data):
    return pl.DataFrame(data)


def gaps_in_polars_categorical(data):
    return pl.DataFrame(data).with_columns(pl.col("shop").cast(pl.Categorical))


@pytest.fixture(scope="module")
def gappy():
    return model().fit(gaps_in_pandas(GAPS), Y)


def test_missing_values_are_learned(gappy):
    assert list(gappy.kinds_.values())[2] == Datetime()
    bases = [c.basis for c in gappy.machines_[0].columns.columns]
    assert bases[0] == Levels(5)  # missing is a category
    assert bases[1] == Missing(Fourier(6))
    assert all(isinstance(basis, Missing) for basis in bases[2:])
    assert gappy.score(gaps_in_pandas(GAPS), Y) > 0.7
    assert not gappy.extrapolated(gaps_in_pandas(GAPS)).any()


@pytest.mark.parametrize(
    "frame",
    [
        *(gaps_in_pandas_extensions, gaps_in_pandas_objects, gaps_in_pandas_category),
        *(gaps_in_polars, gaps_in_polars_categorical),
    ],
)
def test_every_sign_of_a_gap_is_one(gappy, frame):
    other = model().fit(frame(GAPS), Y)
    assert other.kinds_ == gappy.kinds_
    expected = gappy.predict(gaps_in_pandas(GAPS), return_std=True)
    for a, b in zip(other.predict(frame(GAPS), return_std=True), expected, strict=True):
        assert np.array_equal(a, b)


def test_gaps_in_plain_arrays():
    """A gap that says something about the target."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (N, 2))
    gone = rng.random(N) < 0.3
    y = np.where(gone, 2.0, np.sin(3 * X[:, 0])) + X[:, 1] + 0.05 * rng.standard_normal(N)
    X[gone, 0] = np.nan
    for table in (X, X.tolist(), X.astype(object), X.astype(np.float32)):
        fitted = model(columns=None).fit(table, y)
        assert fitted.score(table, y) > 0.98
        mean, std = fitted.predict(table, return_std=True)
        assert np.all(np.isfinite(mean) & (std > 0) & (std < 0.2))


@pytest.mark.parametrize("solver", ["gauss_newton", "als"])
@pytest.mark.parametrize("curvature", ["ggn", "last", "block"])
def test_weights_are_repetitions_of_rows_with_gaps(solver, curvature):
    """Also for a category, the earliest date and a gap that no row with weight has."""
    weight = np.random.default_rng(3).integers(0, 3, N).astype(float)
    frame = gaps_in_pandas(GAPS)
    frame.loc[0, "shop"] = "only here"
    weight[0] = 0.0
    settings = {"solver": solver, "curvature": curvature, "max_sweeps": 30, "tol": 1e9}
    again = np.repeat(np.arange(N), weight.astype(int))
    a = model(**settings).fit(frame, Y, sample_weight=weight)
    b = model(**settings).fit(frame.iloc[again], Y[again])
    assert a.machines_[0].columns.sizes == b.machines_[0].columns.sizes
    for one, other in zip(
        a.predict(frame, return_std=True), b.predict(frame, return_std=True), strict=True
    ):
        assert np.allclose(one, other, rtol=1e-6)


def test_a_column_without_values_carries_nothing():
    frame = in_pandas(DATA)
    for nothing in (np.nan, None, pd.NaT):
        empty = model().fit(frame.assign(nothing=nothing), Y)
        assert empty.machines_[0].columns.sizes[-1] == 1
        assert empty.score(frame.assign(nothing=nothing), Y) > 0.98
        assert not empty.extrapolated(frame.assign(nothing=nothing)).any()
        something = frame.assign(nothing=1.0 if nothing is not pd.NaT else pd.Timestamp(0))
        assert empty.extrapolated(something).all()
        mean, std = empty.predict(something, return_std=True)
        expected, less = empty.predict(frame.assign(nothing=nothing), return_std=True)
        assert np.array_equal(mean, expected)
        assert np.all(std > less)


# values that only come at prediction -------------------------------------------------------------


@pytest.mark.parametrize("predictive", ["linearized", "sampled"])
@pytest.mark.parametrize("curvature", ["ggn", "last", "block"])
def test_what_training_did_not_have_is_less_sure(predictive, curvature):
    fitted = model(predictive=predictive, curvature=curvature, n_draws=400, n_members=2)
    frame = in_pandas(DATA)
    fitted.fit(frame, Y)
    rows = frame.iloc[:12]
    seen = np.max([fitted.predict_dist(rows.assign(shop=s)).std for s in SHOPS], axis=0)
    for changed in (
        rows.assign(shop="new"),
        rows.assign(shop=None),
        rows.assign(size=np.nan),
        rows.assign(when=pd.NaT),
        rows.assign(hour=np.nan),
    ):
        assert fitted.extrapolated(changed).all()
        dist = fitted.predict_dist(changed)
        assert np.all(np.isfinite(dist.mean))
        assert np.all(dist.std > np.where("new" in set(changed["shop"]), seen, 0.0))
        growth = 1.5 if predictive == "linearized" else 1.0
        assert np.mean(dist.std) > growth * np.mean(fitted.predict_dist(rows).std)
        assert np.allclose(dist.aleatoric_std, fitted.predict_dist(rows).aleatoric_std)
    assert not fitted.extrapolated(rows).any()


def test_an_unseen_category_is_not_a_missing_one(gappy):
    row = gaps_in_pandas(DATA).iloc[[5]]
    missing, unseen = (row.assign(shop=s) for s in (None, "new"))
    assert not gappy.extrapolated(missing).any()
    assert gappy.extrapolated(unseen).all()
    assert gappy.predict_dist(unseen).std > gappy.predict_dist(missing).std
    two = row.assign(shop="other")
    assert gappy.predict_dist(unseen).std == gappy.predict_dist(two).std


def test_draws_of_rows_with_unseen_values(reference):
    rows = in_pandas(DATA).iloc[:3].assign(shop=["new", "new", "a"])
    draws, dist = reference.sample_y(rows, 20_000), reference.predict_dist(rows)
    assert np.allclose(draws.std(axis=1), dist.std, rtol=0.03)
    assert np.all(np.abs(draws.mean(axis=1) - dist.mean) < 0.03 * dist.std)


# the contract ------------------------------------------------------------------------------------


def test_pickling_and_cloning(reference):
    frame = in_pandas(DATA)
    again = pickle.loads(pickle.dumps(reference))
    assert np.array_equal(again.predict(frame), reference.predict(frame))
    assert clone(reference).columns == HOUR
    assert np.array_equal(clone(reference).fit(frame, Y).predict(frame), reference.predict(frame))


def test_frames_keep_their_contract(reference):
    frame = in_pandas(DATA)
    assert list(reference.feature_names_in_) == list(DATA)
    assert reference.n_features_in_ == 5
    with pytest.raises(ValueError, match="feature names should match"):
        reference.predict(frame[["hour", "shop", "when", "flag", "size"]])
    with pytest.raises(ValueError, match=r"feature names should match|missing"):
        reference.predict(frame.drop(columns="flag"))
    with pytest.raises(ValueError, match="X has 4 features, but TNKMRegressor is expecting 5"):
        model(columns=None).fit(in_objects(DATA), Y).predict(in_objects(DATA)[:, :4])
    for n in (0, 1):
        with pytest.raises(ValueError, match="minimum of 2 is required"):
            model().fit(frame[:n], Y[:n])
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        reference.predict(frame[:0])
    with pytest.raises(ValueError, match="Complex data not supported"):
        model(columns=None).fit(pd.DataFrame({"a": Y + 1j}), Y)


def test_frames_are_left_alone():
    frame = gaps_in_pandas_objects(GAPS)
    before = frame.copy(deep=True)
    model(tol=1e9).fit(frame, Y).predict(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_fitting_again_forgets():
    frame = in_pandas(DATA)
    twice = model().fit(frame, Y)
    numbers = DATA["size"][:, None]
    assert twice.set_params(columns=None).fit(numbers, Y).kinds_ == {"column 0": Numeric()}
    assert np.array_equal(
        twice.predict(numbers), model(columns=None).fit(numbers, Y).predict(numbers)
    )


def test_cross_validation_with_rare_categories():
    """A fold may lack what another has."""
    frame = in_pandas(DATA)
    frame.loc[:3, "shop"] = ["w", "x", "y", "z"]
    assert np.mean(cross_val_score(model(), frame, Y, cv=4)) > 0.9


def test_columns_without_names_go_by_position():
    frame = in_pandas(DATA).set_axis(range(5), axis=1)
    fitted = model(columns={1: Periodic(24)}).fit(frame, Y)
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.kinds_["column 1"] == Periodic(24)


def test_sources_take_kinds_of_numbers(tmp_path):
    codes = np.searchsorted(SHOPS, DATA["shop"])
    frame = pd.DataFrame({"shop": codes, "hour": DATA["hour"], "size": DATA["size"]})
    path = tmp_path / "rows.csv"
    frame.assign(y=Y).to_csv(path, index=False)
    kinds = {"shop": Categorical(), "hour": Periodic(24)}
    a = model(columns=kinds).fit_rows(path, "y")
    b = model(columns=kinds).fit(frame, Y)
    assert a.kinds_ == b.kinds_
    assert np.array_equal(a.predict(frame), b.predict(frame))
    unseen = frame[:3].assign(shop=9)
    assert np.array_equal(a.predict_dist(unseen).std, b.predict_dist(unseen).std)
    assert a.extrapolated(unseen).all()


# the parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.array([1, 2]), Numeric()),
        (np.array([True, False]), Numeric()),
        (np.array([1.0, np.nan]), Numeric()),
        (np.array([1, None, 2.5], dtype=object), Numeric()),
        (np.array([None, None], dtype=object), Numeric()),
        (np.array(["1", "2"]), Categorical()),
        (np.array([b"1", b"2"]), Categorical()),
        (np.array([1.0, "x", None], dtype=object), Categorical()),
        (np.array(["2024-01-01"], dtype="datetime64[D]"), Datetime()),
        (np.array([datetime.date(2024, 1, 1), None], dtype=object), Datetime()),
        (np.array([pd.Timestamp(0), pd.NaT], dtype=object), Datetime()),
        (np.array([5], dtype="timedelta64[s]"), Numeric()),
    ],
    ids=repr,
)
def test_inference(values, kind):
    assert infer_kind(values) == kind


def test_missing_of_every_kind():
    for value in (None, np.nan, float("nan"), np.float32("nan"), pd.NA, pd.NaT):
        assert is_missing(value)
    assert is_missing(np.datetime64("NaT"))
    for value in (0, "", "nan", "None", False, [], np.zeros(2), datetime.date(2024, 1, 1)):
        assert not is_missing(value)


def test_encoding_by_hand():
    day = np.datetime64("2024-02-28", "D")
    raw = [
        RawColumn(np.array([3, "x", 2.5, None, (1, 2)], dtype=object)),
        RawColumn(np.array([10, 2, 2, 10, 7]), categorical=True),
        RawColumn(day + np.array([2, 0, 5, 1, 0])),
        RawColumn(np.array([True, False, None, True, True], dtype=object)),
    ]
    encoding = pickle.loads(pickle.dumps(Encoding.fit(raw, ("a", "b", "c", "d"))))
    assert encoding.kinds == (Categorical(), Categorical(), Datetime(), Numeric())
    expected = [
        [1.0, 2.0, 2.0, 1.0],
        [2.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 5.0, np.nan],
        [np.nan, 2.0, 1.0, 1.0],
        [3.0, 1.0, 0.0, 1.0],
    ]
    assert np.array_equal(encoding(raw), expected, equal_nan=True)
    new = [
        RawColumn(np.array(["3", 3.0], dtype=object)),
        RawColumn(np.array([np.nan, 7.0])),
        RawColumn(np.array(["2024-02-29T12:00", "NaT"], dtype="datetime64[ns]")),
        RawColumn(np.array([False, True])),
    ]
    expected = [[-1.0, np.nan, 1.5, 0.0], [1.0, 1.0, np.nan, 1.0]]
    assert np.array_equal(encoding(new), expected, equal_nan=True)


def test_what_cannot_be_looked_up_becomes_text():
    raw = [RawColumn(np.array([["a"], "b", {"c": 1}, None, ["a"]], dtype=object))]
    encoding = Encoding.fit(raw, ("a",), {0: Categorical()})
    assert np.array_equal(encoding(raw)[:, 0], [0, 1, 2, np.nan, 0], equal_nan=True)


def test_array_source_with_gaps():
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    source = ArraySource(X, [0.0, 1.0], missing=True)
    assert np.array_equal(source.read(0, 2).X, X, equal_nan=True)
    with pytest.raises(SourceError, match="column 'column 1' is missing"):
        ArraySource(X, [0.0, 1.0]).read(0, 2)
    with pytest.raises(SourceError, match="column 'y' is missing"):
        ArraySource(X, [0.0, np.nan], missing=True).read(0, 2)
    X[1, 0] = np.inf
    with pytest.raises(SourceError, match="column 'column 0' is infinite in row 1"):
        ArraySource(X, [0.0, 1.0], missing=True).read(0, 2)
