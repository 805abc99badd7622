"""Values of all types come back the same to the bit; no other type gets in or out."""

import datetime
import json
import math

import numpy as np
import pandas as pd
import pytest

from tensorlace import ModelFileError, Ordinal
from tensorlace.model_file.codec import Decoder, Encoder
from tensorlace.model_file.container import seal, strict_json, unseal
from tensorlace.model_file.schema import ATTRIBUTES, CHOSEN, CLASSES
from tensorlace.model_file.type_check import conforms, hints
from tests.helpers.model_files import same


def named(value):
    """Name of a case that does not change from run to run."""
    return repr(value).split(" at 0x")[0][:30]


@pytest.mark.parametrize(
    "node",
    [
        {"type": "scalar", "dtype": "object", "value": 1},
        {"type": "scalar", "dtype": "int64", "value": 1e300},
        {"type": "scalar", "dtype": "int8", "value": 1000},
        {"type": "scalar", "dtype": 3, "value": 1},
        {"type": "scalar", "dtype": "datetime64[lightyear]", "value": 1},
        {"type": "float", "value": "1e3"},
        {"type": "float", "value": []},
        {"type": "date", "value": "yesterday"},
        {"type": "datetime", "value": 5},
        {"type": "bytes", "value": "zz"},
        {"type": "dict", "items": [[1, 1], [True, 2]]},
        {"type": "dict", "items": [[[], 1]]},
        {"type": "dict", "items": 5},
        {"type": "tuple", "items": "abc"},
        {"type": "objects", "shape": [10**20], "items": []},
        {"type": "objects", "shape": [-1, 3], "items": [1]},
        {"type": "array", "key": "nowhere", "order": "C"},
        {"type": "array", "key": [], "order": "C"},
        {"type": "array", "key": "one", "order": "C", "triangle": "both"},
        {"type": "array", "key": "one", "order": "K"},
        {"type": "array", "key": "one", "order": "C", "more": 1},
        {"type": "array", "key": "one"},
        {"type": "table", "columns": [["a", [1]], ["b", [1, 2]]]},
        {"type": "table", "columns": [["a", [1]], ["a", [1]]]},
        {"type": "random_state", "state": {"type": "tuple", "items": ["MT19937", [1], 0, 0, 0.0]}},
        {"type": "random_state", "state": []},
        {"type": "interval", "left": 2, "right": 1, "closed": "right"},
        {"type": "interval", "left": 1, "right": 2, "closed": "up"},
        {"type": "Periodic", "fields": {"period": -1.0}},
        {"type": "Ordinal", "fields": {"order": ["a"]}},
        {"type": "tuple", "items": [], "more": 1},
        {},
    ],
    ids=str,
)
def test_hostile_values(node):
    with pytest.raises(ModelFileError) as caught:
        Decoder(CLASSES, {"one": np.ones(1)}).decode(node, "x")
    assert "\n" not in str(caught.value)


def test_a_random_state_beyond_its_keys():
    keys = np.zeros(624, dtype=np.uint32)
    for position, size in ((10**9, 624), (625, 624), (-1, 624), (0, 623), (0.5, 624)):
        node = Encoder({}).encode(("MT19937", [0], position, 0, 0.0), "x")
        node["items"][1] = {"type": "array", "key": "k", "order": "C"}
        with pytest.raises(ModelFileError, match="MT19937 has no such state"):
            Decoder({}, {"k": keys[:size]}).decode({"type": "random_state", "state": node}, "x")


@pytest.mark.parametrize(
    "value",
    [
        *(1j, np.complex128(1), np.longdouble(1), np.zeros(2, complex), np.zeros(1, "M8[s]")),
        *(pd.Timestamp(1, unit="ns"), {1}, range(3), len, object(), np.float64, datetime.time(3)),
        np.random.RandomState(np.random.PCG64(0)),
    ],
    ids=named,
)
def test_values_that_no_file_holds(value):
    with pytest.raises(ModelFileError, match=r"x is .*, which a model file cannot hold"):
        Encoder(CLASSES).encode(value, "x")


VALUES = [
    *(None, True, False, 0, -1, 10**40, "", "a\u0000\ud800\U0001f600", b"\0\xff", [], (), {}),
    *(0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan),
    *(np.float32(0.1), np.float64(0.1), np.float16(0.1), np.int8(-3), np.uint64(2**64 - 1)),
    *(np.bool_(True), np.float64("nan"), np.float32("-inf")),
    *(np.datetime64("2026-01-01"), np.datetime64("NaT"), np.datetime64(5, "ns")),
    *(np.timedelta64(5, "m"), np.datetime64("NaT", "us")),
    *(datetime.date(1, 1, 1), datetime.datetime(2026, 1, 1, 2, 3, 4, 5)),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    *([1, (2.0, [3])], {1: "a", "1": "b", (1, 2): None, None: {}}, {True: 1, "True": 2}),
    *(np.zeros((0, 3)), np.array(3.0), np.arange(6).reshape(2, 3), np.array([True, False])),
    *(np.arange(6.0).reshape(2, 3).T, np.arange(24.0).reshape(2, 3, 4).T),
    *(np.triu(np.arange(9.0).reshape(3, 3)), np.tril(np.arange(16, dtype=np.int32).reshape(4, 4))),
    *(np.asfortranarray(np.triu(np.ones((3, 3)))), np.zeros((2, 2)), -np.zeros((2, 2)), np.eye(2)),
    *(np.array([[1.0, 2.0], [-0.0, 3.0]]), np.array([[True, False], [True, True]])),
    *(np.array([np.nan, -0.0, np.inf]), np.array([["a", 1], [None, 2.5]], dtype=object)),
    *(np.arange(3, dtype=np.uint8), np.arange(3, dtype=np.float32)),
    *(pd.Interval(0.1, 2, "both"), Ordinal([1, "b", None]), np.random.RandomState(3)),
    pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan], "c": ["x", None], "d": [True, False]}),
]


@pytest.mark.parametrize("value", VALUES, ids=named)
def test_values_come_back(value):
    encoder = Encoder(CLASSES)
    node = strict_json(json.dumps({"x": encoder.encode(value, "x")}).encode(), "test")["x"]
    arrays = unseal(seal("", 1, encoder.arrays), 1, "test")[1]
    decoder = Decoder(CLASSES, arrays)
    same(value, decoder.decode(node, "x"))
    assert decoder.unused() == []


def test_big_end_first_and_strides():
    for value in (np.arange(4.0).astype(">f8"), np.arange(12.0)[::-3], np.eye(4)[::2, ::-1]):
        encoder = Encoder({})
        node = encoder.encode(value, "x")
        arrays = unseal(seal("", 1, encoder.arrays), 1, "test")[1]
        assert np.array_equal(Decoder({}, arrays).decode(node, "x"), value)


def test_equal_arrays_are_stored_once():
    encoder = Encoder({})
    encoder.encode([np.ones(3), np.ones(3), np.ones(3, dtype=np.float32), np.ones((3, 1))], "x")
    assert list(encoder.arrays) == ["x.0", "x.2", "x.3"]
    encoder.encode({"a/b": np.zeros(1), "a b": np.ones(1)}, "x")
    assert list(encoder.arrays)[3:] == ["x.a_b", "x.a_b_2"]


@pytest.mark.parametrize(("value", "size"), [(np.triu, 10), (np.tril, 10), (np.asarray, 16)])
def test_of_triangles_one_half_is_stored(value, size):
    for matrix in (value(np.ones((4, 4))), np.asfortranarray(value(np.ones((4, 4))))):
        encoder = Encoder({})
        encoder.encode(matrix, "x")
        assert encoder.arrays["x"].size == size


def test_all_annotations_have_a_rule():
    for cls in CLASSES.values():
        for hint in hints(cls).values():
            assert conforms(object(), hint) in (hint is object, False, True)
            assert not conforms(object(), hint) or hint in (object,)
    for hint in (*ATTRIBUTES.values(), *CHOSEN.values()):
        conforms(None, hint)
    assert conforms({1: 2}, dict[int, int])
    assert not conforms({1: "2"}, dict[int, int])
    assert conforms((1, "a"), tuple[int, str])
    assert not conforms((1,), tuple[int, str])
    assert not conforms("ab", tuple[str, ...])
    assert conforms(3, float)
    assert not conforms(True, float)
    assert not conforms(1, bool)
