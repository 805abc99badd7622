"""The operations of portable graphs in every runtime, and how graphs are built."""

from operator import ge, lt

import numpy as np
import onnxruntime
import pytest

from tensorlace.errors import InputError
from tensorlace.export.translation import onnx_model
from tensorlace.portable import OPERATIONS, ROWS, Builder, Input, complex_powers, evaluate
from tensorlace.report.embed import graph_as_json
from tests.helpers.javascript import start_javascript  # noqa: F401
from tests.helpers.portable import by_javascript, by_numpy, by_onnx, graph_of_columns

A = np.array([0.5, -1.5, 2.5, -0.0, 3.0, 1e300, np.nan, np.inf, -np.inf, 7.0])
B = np.array([2.0, -1.5, 0.5, 4.0, -3.0, 1e-300, 1.0, 2.0, np.nan, 7.0])
COLUMN = np.array([[1.0], [-2.0], [0.25]])

CASES = {
    "add": lambda g, a, b: a + b,
    "sub": lambda g, a, b: 1.0 - a - b,
    "mul": lambda g, a, b: a * b,
    "div": lambda g, a, b: a / b + 1.0 / b,
    "fmod": lambda g, a, b: g.fmod(a, b),
    "pow": lambda g, a, b: g.power(g.abs(a), g.clip(b, -3.0, 3.0)),
    "min": lambda g, a, b: g.minimum(a, b),
    "max": lambda g, a, b: g.maximum(a, b),
    "less": lambda g, a, b: (a < b) & (b > 1.0),
    "less_equal": lambda g, a, b: (a <= b) | (a >= 2.5),
    "equal": lambda g, a, b: g.equal(a, b),
    "and": lambda g, a, b: (a > 0.0) & (b > 0.0),
    "or": lambda g, a, b: np.array([[True], [False]]) | (b > 0.0),
    "neg": lambda g, a, b: -a,
    "abs": lambda g, a, b: g.abs(a),
    "sqrt": lambda g, a, b: g.sqrt(a),
    "exp": lambda g, a, b: g.exp(b),
    "log": lambda g, a, b: g.log(g.abs(b)),
    "cos": lambda g, a, b: g.cos(g.clip(a, -9.0, 9.0)),
    "sin": lambda g, a, b: g.sin(g.clip(a, -9.0, 9.0)),
    "round": lambda g, a, b: g.round(a),
    "isnan": lambda g, a, b: g.isnan(a + b),
    "isinf": lambda g, a, b: g.isinf(a),
    "not": lambda g, a, b: ~(a < b),
    "number": lambda g, a, b: g.number(a < b) * 2.0,
    "where": lambda g, a, b: g.where(a < b, COLUMN, b),
    "expand": lambda g, a, b: g.expand(COLUMN, COLUMN * b),
    "locate": lambda g, a, b: g.locate(np.array([-1.5, 0.0, 0.5, 7.0]), a),
    "lookup": lambda g, a, b: g.lookup(COLUMN.ravel(), g.locate(np.array([0.0, 1.0, 5.0]), b)),
    "matmul": lambda g, a, b: np.arange(6.0).reshape(3, 2) @ g.stack([finite(g, a), finite(g, b)]),
    "sum": lambda g, a, b: g.sum(cube(g, a, b), axis=1),
    "largest": lambda g, a, b: g.largest(cube(g, a, b), axis=0),
    "concat": lambda g, a, b: g.concat([g.stack([a, b]), g.stack([b])]),
    "reshape": lambda g, a, b: g.reshape(cube(g, a, b), (6, ROWS)),
    "transpose": lambda g, a, b: g.constant(np.arange(6.0).reshape(2, 3)).T @ g.stack([a, a]),
    "slice": lambda g, a, b: g.slice(cube(g, a, b), 1, 3),
    "take": lambda g, a, b: g.take(cube(g, a, b), (2, 0, 2)),
    "column": lambda g, a, b: a,
}


def finite(g, a):
    return g.where(g.isnan(a) | g.isinf(a), 0.0, a)


def cube(g, a, b):
    """(3, 2, n)."""
    both = g.reshape(g.stack([finite(g, a), finite(g, b)]), (1, 2, ROWS))
    return both * COLUMN[:, :, None]


def test_every_operation_has_a_case():
    assert {*CASES} == {*OPERATIONS} - {"label"}
    g = Builder()
    x = g.input(Input("x", 2))
    for name, case in CASES.items():
        graph = g.build({"y": case(g, g.column(x, 0), g.column(x, 1))})
        assert name in {node.name for node in graph.nodes}


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("name", CASES)
def test_operations(javascript, name, n):
    graph, x = graph_of_columns(CASES[name], 2), [A[:n], B[:n]]
    want = by_numpy(graph, x)
    for got in (by_onnx(graph, x), by_javascript(javascript, graph, x)):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-15, atol=0)


def test_text(javascript):
    g = Builder()
    x = g.input(Input("x", 1, "text"))
    graph = g.build({"y": g.column(g.label(x, {"é": 2, "": -2, "b b": 0}, -1.0), 0)})
    text = np.array([["é"], ["b b"], ["c"], [""]], dtype=object)
    want = [2.0, 0.0, -1.0, -2.0]
    assert evaluate(graph, {"x": text})["y"].tolist() == want
    live = onnxruntime.InferenceSession(onnx_model(graph, {}, "").SerializeToString())
    assert live.run(None, {"x": text})[0].tolist() == want
    found = javascript.run(
        "return Array.from(tensorlace.evaluate(tensorlace.prepare(input.graph), input, 4).y.data)",
        {"graph": graph_as_json(graph), "x": text.ravel().tolist()},
    )
    assert found == want


@pytest.mark.parametrize("n", [1, 2, 3, 8, 33])
def test_complex_powers(n):
    u = np.linspace(-1.0, 1.0, 9)
    graph = graph_of_columns(lambda g, u: g.concat(complex_powers(g, u, g.sqrt(1.0 - u * u), n)), 1)
    z = (u + 1j * np.sqrt(1.0 - u * u)) ** np.arange(n)[:, None]
    want = np.concatenate([z.real, z.imag])
    np.testing.assert_allclose(by_numpy(graph, [u]), want, rtol=0, atol=2e-16 * n)


def test_what_is_there_is_used_again_and_what_nobody_needs_is_left_out():
    g = Builder()
    x = g.column(g.input(Input("x", 1)), 0)
    y = g.cos(x * np.array([[1.0], [2.0]]))
    assert g.cos(x * np.array([[1.0], [2.0]])).place == y.place
    assert g.cos(x * np.array([1.0])).place != y.place
    g.exp(x)
    graph = g.build({"y": g.sum(y), "z": g.row(y, 1)})
    names = [node.name for node in graph.nodes]
    assert names == ["input", "column", "constant", "mul", "cos", "sum", "slice", "reshape"]
    assert graph.n_bytes == 16
    assert [source.name for source in graph.inputs] == ["x"]
    out = evaluate(graph, {"x": np.array([[0.0], [1.0]])})
    np.testing.assert_allclose(out["y"], [2.0, np.cos(1.0) + np.cos(2.0)])
    assert out["z"].tolist() == [1.0, np.cos(2.0)]


def test_an_array_on_the_left_leaves_the_operator_to_the_graph():
    g = Builder()
    x = g.column(g.input(Input("x", 1)), 0)
    for value in (COLUMN * x, COLUMN - x, COLUMN / x, lt(COLUMN, x), ge(COLUMN, x)):
        assert value.shape == (3, ROWS)
    assert (np.ones(3) @ (COLUMN * x)).shape == (ROWS,)


WRONG = {
    r"shapes \(3, 1\), \(2, 1\) do not go": lambda g, x: COLUMN + g.constant(np.ones((2, 1))),
    r"shapes \(3,\), \(-1,\) do not go": lambda g, x: g.constant(np.ones(3)) + x,
    r"where was given number, .*use mask, number": lambda g, x: g.where(x, x, x),
    r"add was given mask, number": lambda g, x: g.isnan(x) + x,
    r"matmul was given the shapes \(3, 1\) and \(-1,\)": lambda g, x: COLUMN @ x,
    r"axis 0 of an array of shape \(-1,\) cannot be reduced": lambda g, x: g.sum(x),
    r"axis 2 of": lambda g, x: g.sum(COLUMN * x, axis=2),
    r"concat was given": lambda g, x: g.concat([x, x]),
    r"cannot become one of shape \(4, -1\)": lambda g, x: g.reshape(COLUMN * x, (4, ROWS)),
    r"transpose was given": lambda g, x: g.constant(np.ones(3)).T,
    r"no entries 2 to 4": lambda g, x: g.slice(COLUMN * x, 2, 4),
    r"no entries \(3,\)": lambda g, x: g.take(COLUMN * x, [3]),
    r"no column 1": lambda g, x: g.column(g.constant(COLUMN), 1),
    r"cannot fill": lambda g, x: g.expand(COLUMN * x, x),
    r"a value of one graph": lambda g, x: Builder().exp(x),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_does_not_go_together(message):
    g = Builder()
    with pytest.raises(InputError, match=message):
        WRONG[message](g, g.column(g.input(Input("x", 1)), 0))


def test_inputs_that_are_missing_or_of_another_width():
    graph = graph_of_columns(lambda g, x: x)
    with pytest.raises(InputError, match=r"x was given nothing; use an array of shape \(n, 1\)"):
        evaluate(graph, {})
    with pytest.raises(InputError, match=r"x was given shape \(3,\)"):
        evaluate(graph, {"x": np.zeros(3)})


def test_knots_have_to_be_constant_for_onnx():
    graph = graph_of_columns(lambda g, x: g.locate(g.constant(np.arange(3.0)) * 2.0, x))
    assert by_numpy(graph, [np.array([3.0])]).tolist() == [1.0]
    with pytest.raises(InputError, match="knots of locate are computed"):
        onnx_model(graph, {}, "")
