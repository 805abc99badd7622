"""The server: answers are those of Python, and nothing a client sends is an error of the server."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import hypothesis
import numpy as np
import pandas as pd
import pytest
import schemathesis
import uvicorn
from uvicorn.server import ServerState

import tensorlace
from tensorlace import Categorical, Datetime, InputError, Ordinal, SourceError, TNKMRegressor, save
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.serve import create_app, limits, protocol, serve
from tensorlace.serve.limits import LARGEST_BODY
from tensorlace.serve.protocol import ImpatientProtocol
from tensorlace.serve.server import _listen

CASES = int(os.environ.get("TENSORLACE_CASES", "12"))  # of schemathesis, per path
SOCKETS = int(os.environ.get("TENSORLACE_SOCKETS", "60"))  # slow ones, and requests at a time


def frame(n=60):
    rng = np.random.default_rng(0)
    shop = rng.integers(3, size=n)
    out = pd.DataFrame(
        {
            "size": rng.uniform(0, 9, n),
            "shop": np.array(["<b>", "c", "d"])[shop],
            "zip": rng.choice([8001, 8002], n),
            "day": pd.date_range("2026-01-01", periods=n, freq="7h"),
            "grade": rng.choice(["low", "high"], n),
            "open": rng.random(n) < 0.5,
        }
    )
    out.loc[0, "size"] = np.nan
    y = out["size"].fillna(4) + shop + 0.1 * rng.standard_normal(n)
    return out, y.to_numpy()


OUTPUTS = ["mean", "std", "lower", "upper", "novelty", "unlike"]
KINDS = {"zip": Categorical(), "day": Datetime(), "grade": Ordinal(["low", "high"])}
FEW = {"rank": 2, "n_basis": 3, "random_state": 0, "max_sweeps": 10, "tol": 1e-1}


@pytest.fixture(scope="module")
def model():
    return TNKMRegressor(columns=KINDS, **FEW).fit(*frame())


@pytest.fixture(scope="module")
def app(model):
    return create_app(model, "houses", target="price")


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 3))
    return TNKMRegressor(**FEW).fit(X, X.sum(axis=1) + 0.1 * rng.standard_normal(60))


@pytest.fixture(scope="module")
def numbers_app(numbers):
    return create_app(numbers, "plain")


def call(app, method, path, **how):
    async def request():
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.request(method, path, **how)

    return asyncio.run(request())


def problem(response, status):
    """The one line of an error."""
    assert response.status_code == status, response.text
    content = response.json()
    assert list(content) == ["error"]
    assert "\n" not in content["error"]
    return content["error"]


def local(model, X, coverage=0.9):
    mean, std = model.predict(X, return_std=True)
    lower, upper = model.predict_interval(X, coverage)
    found = model.novelty(X)
    columns = {"mean": mean, "std": std, "lower": lower, "upper": upper, "novelty": found.measure}
    rows = zip(*(x.tolist() for x in columns.values()), found.reasons, strict=True)
    columns["unlike"] = found.reasons
    return [dict(zip(columns, row, strict=True)) for row in rows]


def as_json(X):
    """Rows of a frame as a client would write them."""
    text = X.assign(day=X["day"].map(lambda d: d.isoformat())).astype(object)
    return [
        {k: None if v is None or v != v else v for k, v in row.items()}
        for row in text.to_dict("records")
    ]


ROW = {"size": 3, "shop": "c", "zip": 8001, "day": "2026-01-05", "grade": "low", "open": True}


def test_predict_is_what_python_says(app, model):
    X, _ = frame(20)
    X.loc[1, "shop"], X.loc[2, "zip"], X.loc[3, "day"] = "new", 1, pd.Timestamp("2030-01-01")
    rows = as_json(X)
    answer = call(app, "POST", "/predict", json={"rows": rows})
    assert answer.status_code == 200, answer.text
    assert answer.json() == local(model, X)
    first = answer.json()[1]
    assert (first["unlike"], first["novelty"] >= 2.0) == (
        "shop has a value that no training row had",
        True,
    )
    assert {row["novelty"] <= 1.0 for row in answer.json() if row["unlike"] == ""} == {True}
    answer = call(app, "POST", "/predict", json={"rows": rows, "coverage": 0.5})
    assert answer.json() == local(model, X, 0.5)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"zip": "8001"}, {}),
        ({"size": None}, {"size": np.nan}),
        ({"shop": None}, {"shop": None}),
        ({"shop": 17}, {"shop": "unheard of"}),
        ({"day": "2026-01-05T02:00:00+02:00"}, {}),
        ({"day": "2026-01-05T00:00:00Z"}, {}),
        ({"day": None}, {"day": pd.NaT}),
        ({"open": 1}, {}),
        ({"open": None}, {"open": None}),
        ({"size": 3.0}, {}),
    ],
)
def test_ways_to_write_a_value(app, model, change, same):
    X = pd.DataFrame([{**ROW, "day": pd.Timestamp("2026-01-05"), **same}])
    answer = call(app, "POST", "/predict", json={"rows": [{**ROW, **change}]})
    assert answer.status_code == 200, answer.text
    assert answer.json() == local(model, X)


def test_rows_as_lists(numbers_app, numbers):
    X = np.array([[0.1, np.nan, 0.5], [3.0, 0.0, 0.0]])
    answer = call(numbers_app, "POST", "/predict", json={"rows": [[0.1, None, 0.5], [3, 0, 0]]})
    assert answer.json() == local(numbers, X)
    named = {f"column {k}": x for k, x in enumerate((3, 0, 0))}
    answer = call(numbers_app, "POST", "/predict", json={"rows": [named]})
    assert answer.json() == local(numbers, X[1:])


def test_calibrated_intervals():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100, 2))
    y = X.sum(axis=1) + rng.standard_normal(100)
    model = TNKMRegressor(**FEW).fit(X[:60], y[:60]).calibrate(X[60:], y[60:])
    app = create_app(model)
    answer = call(app, "POST", "/predict", json={"rows": X[:5].tolist()})
    assert answer.json() == local(model, X[:5])
    answer = call(app, "POST", "/predict", json={"rows": X[:5].tolist(), "coverage": 0.99})
    assert re.search("40 rows cannot calibrate", problem(answer, 422))


def tensor(name, data, datatype="FP64", shape=None):
    return {"name": name, "datatype": datatype, "shape": shape or [len(data)], "data": data}


def test_inference_with_one_tensor(numbers_app, numbers):
    X = np.array([[0.1, np.nan, 0.5], [3.0, 0.0, 0.0]])
    flat = tensor("X", [0.1, None, 0.5, 3, 0, 0], shape=[2, 3])
    nested = tensor("X", [[0.1, None, 0.5], [3, 0, 0]], "FP32", [2, 3])
    want = local(numbers, X, 0.8)
    for given in (flat, nested):
        asked = {"id": "seven", "inputs": [given], "parameters": {"coverage": 0.8}}
        answer = call(numbers_app, "POST", "/v2/models/plain/infer", json=asked)
        assert answer.status_code == 200, answer.text
        content = answer.json()
        assert content.pop("model_name") == "plain"
        assert content.pop("id") == "seven"
        for out in content["outputs"]:
            assert out["shape"] == [2]
            assert out["datatype"] == ("BYTES" if out["name"] == "unlike" else "FP64")
            assert out["data"] == [row[out["name"]] for row in want]
        assert [out["name"] for out in content["outputs"]] == OUTPUTS
    asked = {"inputs": [flat], "outputs": [{"name": "std"}, {"name": "unlike"}]}
    answer = call(numbers_app, "POST", "/v2/models/plain/infer", json=asked)
    assert [out["name"] for out in answer.json()["outputs"]] == ["std", "unlike"]
    reasons = answer.json()["outputs"][1]["data"]
    assert reasons == [
        "column 1 has a value that no training row had",
        numbers.novelty(X).reasons[1],
    ]
    assert re.fullmatch(r"column 0 is [\d.]+ ranges beyond its training range", reasons[1])


def test_inference_with_a_tensor_for_each_column(app, model):
    X, _ = frame(4)
    rows = as_json(X)
    about = call(app, "GET", "/v2/models/houses").json()
    assert {i["name"]: i["datatype"] for i in about["inputs"]} == {
        **dict.fromkeys(("size", "open"), "FP64"),
        **dict.fromkeys(("shop", "zip", "day", "grade"), "BYTES"),
    }
    inputs = [
        tensor(i["name"], [r[i["name"]] for r in rows], i["datatype"]) for i in about["inputs"]
    ]
    inputs[2]["data"] = [str(v) for v in inputs[2]["data"]]
    answer = call(app, "POST", "/v2/models/houses/infer", json={"inputs": inputs[::-1]}).json()
    found = {out["name"]: out["data"] for out in answer["outputs"]}
    assert found == {k: [row[k] for row in local(model, X)] for k in found}


def test_health_and_metadata(app):
    for path, content in {
        "/v2/health/live": {"live": True},
        "/v2/health/ready": {"ready": True},
        "/v2/models/houses/ready": {"name": "houses", "ready": True},
    }.items():
        answer = call(app, "GET", path)
        assert (answer.status_code, answer.json()) == (200, content)
    assert call(app, "GET", "/v2").json()["name"] == "tensorlace"
    about = call(app, "GET", "/v2/models/houses").json()
    assert [o["name"] for o in about["outputs"]] == OUTPUTS
    assert [o["datatype"] for o in about["outputs"]] == ["FP64"] * 5 + ["BYTES"]
    for path in ("/v2/models/other", "/v2/models/other/ready"):
        assert problem(call(app, "GET", path), 404) == "no model 'other': this server has 'houses'"
    assert "GET / says" in problem(call(app, "GET", "/docs"), 404)
    assert problem(call(app, "GET", "/predict"), 405)


def test_page_says_how_to_call_it(app, model):
    answer = call(app, "GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    assert "&lt;b&gt;" in answer.text
    assert "<b>" not in answer.text
    assert "<script" not in answer.text
    assert not re.search(r"(src|href)=", answer.text)
    import html

    line = html.unescape(re.search("<pre>(curl.*?)</pre>", answer.text)[1])
    address, body = re.fullmatch(r"curl -s (\S+) -d '(.*)'", line).groups()
    shown = json.loads(html.unescape(re.findall("<pre>(.*?)</pre>", answer.text)[1]))
    found = call(app, "POST", address, content=body.encode()).json()
    assert [
        {k: v if isinstance(v, str) else float(f"{v:.6g}") for k, v in row.items()} for row in found
    ] == shown


DEEP = 10_000
BAD = [
    ("", 400, "no JSON"),
    ('{"rows": [{"size": NaN}]}', 400, "no JSON"),
    ('{"rows": [{"size": Infinity}]}', 400, "no JSON"),
    ('{"rows": [{"size": -Infinity}]}', 400, "no JSON"),
    ("[" * DEEP + "]" * DEEP, 400, "recursion limit"),
    ('{"rows":' + '{"a":' * DEEP + "1" + "}" * DEEP + "}", 400, "recursion limit"),
    ('{"rows": [{}]', 400, "no JSON"),
    (b'{"rows": ["\xff"]}', 400, "no JSON"),
    ("[]", 422, "the body: "),
    ("{}", 422, "rows: Field required"),
    ('{"rows": []}', 422, "rows: List should have at least 1 item"),
    ('{"rows": 3}', 422, "rows: "),
    ('{"rows": [3]}', 422, "rows.0"),
    ({"rows": [ROW], "path": "/etc/passwd"}, 422, "path: Extra inputs are not permitted"),
    ({"rows": [ROW], "coverage": 1}, 422, "coverage: Input should be less than or equal to 0.999"),
    ({"rows": [ROW], "coverage": "0.9"}, 422, "coverage: Input should be a valid number"),
    ({"rows": [[1, 2]]}, 422, "row 0 has 2 values; the model has 6 columns"),
    ({"rows": [ROW, {**ROW, "sise": 1}]}, 422, "row 1: no column 'sise': did you mean 'size'"),
    ({"rows": [{"size": 1}]}, 422, "row 0 lacks column 'shop': give null"),
    ({"rows": [{**ROW, "size": "3"}]}, 422, "column 'size', row 0: '3' is no number"),
    ({"rows": [{**ROW, "size": [3]}]}, 422, r"column 'size', row 0: \[3\] is no number"),
    ({"rows": [{**ROW, "shop": {"a": 1}}]}, 422, "row 0: {'a': 1} is no category"),
    ({"rows": [{**ROW, "grade": "middle"}]}, 422, "not in the order given"),
    ({"rows": [{**ROW, "day": "yesterday"}]}, 422, "column 'day', row 0: 'yesterday' is no date"),
    ({"rows": [{**ROW, "day": 17}]}, 422, "column 'day', row 0: 17 is no date"),
    ({"rows": [{**ROW, "day": "0001-01-01T00:00:00+23:00"}]}, 422, "is no date"),
    ({"rows": [{**ROW, "size": 10**400}]}, 422, "beyond the range of doubles"),
    (json.dumps({"rows": [ROW]}).replace("3,", "1e999,"), 422, "beyond the range of doubles"),
]


@pytest.mark.parametrize(("body", "status", "text"), BAD)
def test_bad_rows(app, body, status, text):
    content = (
        body
        if isinstance(body, bytes)
        else (body.encode() if isinstance(body, str) else json.dumps(body).encode())
    )
    answer = call(app, "POST", "/predict", content=content)
    assert re.search(text, problem(answer, status))


X3 = tensor("X", [1, 2, 3], shape=[1, 3])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "inputs: Field required"),
        ({"inputs": []}, "inputs: List should have at least 1"),
        ({"inputs": [{**X3, "name": "Y"}]}, "no input 'Y': there are X"),
        ({"inputs": [X3, X3]}, "input 'X' is there twice"),
        ({"inputs": [{**X3, "shape": [3]}]}, r"shape \[3\]; give \[rows, 3\]"),
        ({"inputs": [{**X3, "shape": [3, 1]}]}, r"shape \[3, 1\]; give \[rows, 3\]"),
        ({"inputs": [{**X3, "shape": [2, 3]}]}, r"has 3 values; shape \[2, 3\] takes 6"),
        ({"inputs": [{**X3, "shape": [0, 3]}]}, "inputs.0.shape.0: "),
        ({"inputs": [{**X3, "shape": [-1, 3]}]}, "inputs.0.shape.0: "),
        ({"inputs": [{**X3, "shape": [10**30, 3]}]}, "has 3 values"),
        ({"inputs": [{**X3, "shape": [True, 3]}]}, "inputs.0.shape.0: "),
        ({"inputs": [{**X3, "data": [[1, 2], [3]]}]}, "not rows of shape"),
        ({"inputs": [{**X3, "data": [1, 2, [3]]}]}, "not rows of shape"),
        ({"inputs": [{**X3, "data": [[1, 2, [3]]]}]}, r"\[3\] is no number"),
        ({"inputs": [{**X3, "data": [1, 2, "3"]}]}, "'3' is no number"),
        ({"inputs": [{**X3, "datatype": "BYTES"}]}, "it is a number: give FP64"),
        ({"inputs": [X3], "outputs": [{"name": "men"}]}, "no output 'men': did you mean 'mean'"),
        ({"inputs": [X3], "parameters": {"coverage": 2}}, "parameters.coverage: "),
    ],
)
def test_bad_tensors(numbers_app, body, text):
    answer = call(numbers_app, "POST", "/v2/models/plain/infer", json=body)
    assert re.search(text, problem(answer, 422))


def test_bad_columns_of_tensors(app):
    full = [tensor(k, [v], "FP64" if k in ("size", "open") else "BYTES") for k, v in ROW.items()]
    for change, text in (
        (full[1:], "1 of 6 inputs are not there, such as 'size'"),
        ([*full[:5], {**full[5], "shape": [2], "data": [1, 0]}], r"shape \[2\]; give \[1\]"),
        ([*full[:3], {**full[3], "datatype": "INT64"}, *full[4:]], "it is a date: give BYTES"),
    ):
        answer = call(app, "POST", "/v2/models/houses/infer", json={"inputs": change})
        assert re.search(text, problem(answer, 422))


def test_predictions_that_are_no_numbers(numbers):
    X = np.linspace(0, 1, 30)[:, None]
    model = TNKMRegressor(basis="polynomial", warp="identity", **FEW).fit(X, X[:, 0])
    answer = call(create_app(model), "POST", "/predict", json={"rows": [[1e200]]})
    assert "finite" in problem(answer, 422)


def asgi(app, pieces, headers=(), method="POST", path="/predict"):
    """Status, answer, and how many pieces of the body were asked for."""
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": list(headers),
        "http_version": "1.1",
        "scheme": "http",
        "server": ("here", 80),
        "client": ("there", 1),
        "root_path": "",
        "asgi": {"version": "3.0"},
    }
    sent, asked = [], 0

    async def receive():
        nonlocal asked
        asked += 1
        piece = next(pieces, None)
        if piece is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": piece, "more_body": True}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"]), asked


@pytest.mark.parametrize("size", [str(LARGEST_BODY + 1), "9" * 30])
def test_a_large_body_is_refused_before_it_is_read(app, size):
    headers = [(b"content-length", size.encode())]
    status, given, content, asked = asgi(app, iter([]), headers)
    assert (status, asked) == (413, 0)
    assert given[b"connection"] == b"close"
    assert "10 MiB" in content["error"]


def test_a_large_body_without_a_length_is_refused_when_it_gets_too_large(app):
    pieces = iter([b" " * 2**20] * 1000)
    status, given, _, asked = asgi(app, pieces, [(b"transfer-encoding", b"chunked")])
    assert (status, asked) == (413, 11)
    assert given[b"connection"] == b"close"


def test_a_body_of_the_largest_size_is_read(app):
    body = json.dumps({"rows": [ROW]}).encode()
    answer = call(app, "POST", "/predict", content=body + b" " * (LARGEST_BODY - len(body)))
    assert answer.status_code == 200


def test_a_body_that_does_not_arrive(model):
    app = create_app(model, body_seconds=0.05)
    status, given, content, _ = asgi(app, iter([b"{"]))
    assert status == 408
    assert given[b"connection"] == b"close"
    assert "0.05 seconds" in content["error"]


def test_a_client_that_is_gone_gets_nothing(app):
    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": []}
    asyncio.run(app(scope, receive, send))


def test_all_bodies_together_are_bounded(app, monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_TOTAL", 3 * 2**20)
    for _ in range(2):  # and nothing of them is left
        status, given, _, asked = asgi(app, iter([b" " * 2**20] * 9))
        assert (status, asked) == (503, 4)
        assert given[b"retry-after"] == b"1"
    answer = call(app, "POST", "/predict", json={"rows": [ROW]})
    assert answer.status_code == 200


@pytest.mark.parametrize("host", ["][", "a b", "x" * 5000, "<script>", "http://[", "é"])
def test_any_host(app, host):
    answer = call(app, "GET", "/", headers={b"host": host.encode()})
    assert answer.status_code == 200
    assert "<script" not in answer.text


def test_a_fault_of_the_server_is_one_line(model, capsys, monkeypatch):
    monkeypatch.setattr(FittedModel, "dist_and_novelty", lambda self, X: 1 / 0)
    monkeypatch.setattr("tensorlace.serve.app.page", lambda served: "")
    answer = call(create_app(model), "POST", "/predict", json={"rows": [ROW]})
    assert "division" not in problem(answer, 500)
    err = capsys.readouterr().err
    assert err == "error: POST '/predict': ZeroDivisionError: division by zero\n"
    monkeypatch.setenv("TENSORLACE_TRACEBACK", "1")
    call(create_app(model), "POST", "/predict", json={"rows": [ROW]})
    assert "Traceback" in capsys.readouterr().err


def test_no_request_names_a_file_or_an_address(app):
    schema = call(app, "GET", "/openapi.json").json()
    assert sorted(schema["paths"]) == [
        "/",
        "/predict",
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/{model_name}",
        "/v2/models/{model_name}/infer",
        "/v2/models/{model_name}/ready",
    ]
    for path in schema["paths"].values():
        for operation in path.values():
            assert {p["name"] for p in operation.get("parameters", ())} <= {"model_name"}
            assert set(operation.get("requestBody", {}).get("content", ())) <= {"application/json"}
    fields = {
        field
        for component in schema["components"]["schemas"].values()
        for field in component["properties"]
    }
    assert fields >= {"inputs", "data", "coverage", "error"}
    assert not fields & {"path", "file", "url", "uri", "upload", "filename", "content"}


GOOD, WRONG = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        ("GET", "/v2/models/{model_name}", GOOD),
        ("GET", "/v2/models/{model_name}/ready", GOOD),
        ("POST", "/v2/models/{model_name}/infer", GOOD),
        ("POST", "/v2/models/{model_name}/infer", WRONG),
        ("POST", "/predict", GOOD),
        ("POST", "/predict", WRONG),
    ],
)
def test_nothing_a_client_sends_is_an_error_of_the_server(app, method, path, mode):
    api = schemathesis.openapi.from_asgi("/openapi.json", app)
    seen = set()

    @hypothesis.settings(
        max_examples=CASES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=api[path][method].as_strategy(generation_mode=mode))
    def run(case):
        if path.endswith("infer"):
            case.path_parameters["model_name"] = "houses"
        response = case.call()
        seen.add(response.status_code)
        assert response.status_code < 500
        if response.status_code >= 400:
            assert list(response.json()) == ["error"]

    run()
    assert seen <= {200, 400, 404, 422}
    if mode is GOOD and path == "/predict":
        assert 200 in seen


# A process of its own ------------------------------------------------------------------------


class Running:
    def __init__(self, process, address):
        self.process, self.address = process, address
        self.port = int(address.rsplit(":", 1)[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


def start(path, *options):
    source = str(Path(tensorlace.__file__).parents[1])
    words = [sys.executable, "-m", "tensorlace.cli", "serve", str(path), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    line = process.stderr.readline()
    address = re.search(r"on (http://127\.0\.0\.1:\d+) ", line)
    assert address, line
    return Running(process, address[1])


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("serve") / "houses.tlace"
    save(model, path, notes={"target": "price"})
    return path


@pytest.fixture(scope="module")
def running(file):
    server = start(file)
    yield server
    server.process.kill()
    server.process.communicate()


def test_slow_sockets_leave_others_alone(running):
    begin = b"POST /predict HTTP/1.1\r\nHost: here\r\n"
    sockets = [running.connect() for _ in range(SOCKETS)]
    try:
        for k, connection in enumerate(sockets):
            connection.sendall(begin + (b"Content-Length: 1000\r\n\r\n{" if k % 2 else b"X-Slow: "))
        for _ in range(3):
            answer = httpx.post(f"{running.address}/predict", json={"rows": [ROW]}, timeout=60)
            assert answer.status_code == 200
    finally:
        for connection in sockets:
            connection.close()


def test_many_at_once_are_all_answered_as_by_python(running, model):
    X, _ = frame()
    rows, want = as_json(X), [local(model, X[k : k + 1]) for k in range(len(X))]

    def ask(k):
        row = k % len(rows)
        answer = httpx.post(f"{running.address}/predict", json={"rows": [rows[row]]}, timeout=120)
        return answer.json() == want[row]

    with ThreadPoolExecutor(SOCKETS) as pool:
        assert all(pool.map(ask, range(4 * SOCKETS)))


def test_a_declared_large_body_is_answered_over_the_wire(running):
    with running.connect() as connection:
        connection.sendall(
            b"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: 99999999\r\n\r\n"
        )
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")


def read_all(connection):
    parts = []
    while piece := connection.recv(65536):
        parts.append(piece)
    return b"".join(parts)


def test_a_stop_finishes_what_is_under_way(file, model):
    server = start(file, "--name", "other")
    X, _ = frame()
    body = json.dumps({"rows": as_json(X) * 20}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with server.connect() as busy, server.connect() as slow, server.connect() as idle:
        slow.sendall(head + body[:10])  # and never the rest
        idle.sendall(b"POST /pre")
        busy.sendall(head + body[:100])
        answer = httpx.get(f"{server.address}/v2/models/other/ready", timeout=60)
        assert answer.json() == {"name": "other", "ready": True}
        server.process.send_signal(signal.SIGTERM)
        busy.sendall(body[100:])
        answer = read_all(busy)
        assert server.process.wait(timeout=60) == 0
    head, content = answer.split(b"\r\n\r\n", 1)
    assert head.startswith(b"HTTP/1.1 200 ")
    assert int(re.search(rb"content-length: (\d+)", head)[1]) == len(content)
    assert len(json.loads(content)) == 20 * len(X)
    assert "Traceback" not in server.process.communicate()[1]
    with pytest.raises(OSError):
        server.connect()


def test_headers_that_trickle_in_are_cut_off(app, monkeypatch):
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.1)
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, log_level="critical")
    config.load()

    async def talk(*pieces):
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: ImpatientProtocol(config, ServerState(), {}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for piece in pieces:
            writer.write(piece)
        got = await reader.read()  # until the server closes
        writer.close()
        server.close()
        return got

    whole = b"GET /v2/health/live HTTP/1.1\r\nHost: here\r\n\r\n"
    assert asyncio.run(talk(b"GET /v2 HTTP/1.1\r\nX-Slow:")) == b""
    assert asyncio.run(talk()) == b""
    got = asyncio.run(talk(whole, b"GET /v2 HTTP"))
    assert got.endswith(b'{"live":true}')


def test_addresses(numbers, capsys):
    import inspect

    assert inspect.signature(serve).parameters["host"].default == "127.0.0.1"
    with _listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SourceError, match=rf"127.0.0.1:{port} cannot be listened on: .*in use"):
            serve(numbers, port=port)


def test_what_is_not_installed(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("tensorlace.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(InputError, match=r"needs fastapi: pip install 'tensorlace\[serve\]'"):
        import tensorlace.serve  # noqa: F401
