"""The runtimes of portable graphs: NumPy, which is the meaning, ONNX Runtime and JavaScript."""

import json

import numpy as np
import onnxruntime

from tensorlace.export.translation import onnx_model
from tensorlace.portable import Builder, Input, evaluate
from tensorlace.report.embed import graph_as_json

_RUN = """
const graph = tensorlace.prepare(input.graph), found = {}, inputs = {};
for (const [name, x] of Object.entries(input.inputs)) inputs[name] = x.map(Number);
const outputs = tensorlace.evaluate(graph, inputs, input.n);
for (const [name, { shape, data }] of Object.entries(outputs))
  found[name] = [shape, Array.from(data, String)];
return found;
"""


def graph_of_columns(function, n_columns=1):
    """Graph with the output y of a function of a builder and of columns (n,) of the input x."""
    g = Builder()
    x = g.input(Input("x", n_columns))
    y = function(g, *(g.column(x, d) for d in range(n_columns)))
    return g.build({"y": g.number(y) if y.kind == "mask" else y})


def by_numpy(graph, x):
    """Output y for columns x (n,)."""
    return evaluate(graph, {"x": np.stack(x, axis=1)})["y"]


def by_onnx(graph, x):
    """The same, by ONNX Runtime."""
    proto = onnx_model(graph, {}, "")
    live = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return live.run(["y"], {"x": np.stack(x, axis=1)})[0]


def by_javascript(javascript, graph, x):
    """The same, by the engine of the report, for all rows together."""
    rows = np.stack(x, axis=1)
    words = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}  # JSON has none of them
    content = {
        "graph": json.loads(json.dumps(graph_as_json(graph))),
        "inputs": {"x": [words.get(str(v), str(v)) for v in rows.ravel().tolist()]},
        "n": len(rows),
    }
    shape, data = javascript.run(_RUN, content)["y"]
    return np.array([float(v) for v in data]).reshape(shape)
