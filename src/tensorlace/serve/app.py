"""The routes: health and metadata, inference with tensors, and predictions for people."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import escape
from importlib.metadata import version
from typing import Any

from tensorlace.errors import InputError

try:
    import uvicorn  # noqa: F401
    from fastapi import FastAPI, Request, Response
    from fastapi.openapi.utils import get_openapi
    from fastapi.responses import HTMLResponse
except ImportError as lack:
    raise InputError(f"the server needs {lack.name}: pip install 'tensorlace[serve]'") from lack

from joblib import effective_n_jobs
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from tensorlace.columns.encoding import LevelCodes
from tensorlace.errors import TensorlaceError
from tensorlace.machines.fitted_model import FittedModel, HoldsModel
from tensorlace.serve.limits import BODY_SECONDS, Limits, error
from tensorlace.serve.model import OUTPUTS, ServedModel
from tensorlace.serve.open_inference import (
    Coverage,
    InferRequest,
    InferResponse,
    ModelMetadata,
    infer,
    metadata,
)
from tensorlace.serve.page import ADDRESS, page
from tensorlace.serve.values import ColumnValues

__all__ = ["create_app"]


class PredictRequest(BaseModel):
    """Rows by column name, or as lists in the order of the columns."""

    model_config = ConfigDict(strict=True, extra="forbid")
    rows: list[dict[str, Any] | list[Any]] = Field(min_length=1)
    coverage: Coverage = 0.9


class Prediction(BaseModel):
    """What the model says of a row; a new target is within lower and upper with ``coverage``."""

    mean: float
    std: float
    lower: float
    upper: float
    novelty: float = Field(description="How unlike training rows: above 1 it is unlike them.")
    unlike: str = Field(description="Why it is; empty if it is not.")


class Problem(BaseModel):
    """What is wrong, in one line."""

    error: str


def create_app(
    model: FittedModel | HoldsModel,
    name: str = "model",
    *,
    target: str | None = None,
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """ASGI application that answers for one fitted model.

    Parameters
    ----------
    model : TNKMRegressor or FittedModel
    name : str
        Of the model, in ``/v2/models/{name}``.
    target : str, optional
        What is predicted.
    body_seconds : float
        Within which the body of a request has to arrive.

    Examples
    --------
    >>> import numpy as np
    >>> from tensorlace import TNKMRegressor
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> app = create_app(TNKMRegressor(rank=1, n_basis=3).fit(X, X.prod(axis=1)))
    >>> app.openapi()["paths"]["/predict"]["post"]["summary"]
    'Predict'
    """
    served = ServedModel.of(model, name, target)
    number = version("tensorlace")
    app = FastAPI(
        title=f"tensorlace: {name}",
        version=number,
        docs_url=None,  # these pages load scripts from elsewhere; /openapi.json and / stay
        redoc_url=None,
        exception_handlers={
            HTTPException: _http_error,
            TensorlaceError: _input_error,
            ValidationError: _validation_error,
        },
    )
    app.add_middleware(Limits, seconds=body_seconds)
    app.openapi = _openapi(app)  # type: ignore[method-assign]
    _add_health(app, name, number)
    _add_model(app, served)
    return app


def _add_health(app: FastAPI, name: str, number: str) -> None:
    @app.get("/v2/health/live", tags=["inference protocol"])
    async def live() -> dict[str, bool]:
        """The server runs."""
        return {"live": True}

    @app.get("/v2/health/ready", tags=["inference protocol"])
    async def ready() -> dict[str, bool]:
        """The model is loaded."""
        return {"ready": True}

    @app.get("/v2", tags=["inference protocol"])
    async def server() -> dict[str, str | list[str]]:
        """What this server is."""
        return {"name": "tensorlace", "version": number, "extensions": []}

    @app.get("/v2/models/{model_name}/ready", tags=["inference protocol"], responses=_problems(404))
    async def model_ready(model_name: str) -> dict[str, str | bool]:
        """The model is loaded."""
        _check_name(model_name, name)
        return {"name": name, "ready": True}


def _add_model(app: FastAPI, served: ServedModel) -> None:
    # as many predictions at a time as there are cores; the loop is free for everybody else
    pool = ThreadPoolExecutor(max(2, effective_n_jobs(-1)), thread_name_prefix="predict")
    home = page(served)

    async def work(request: Request, answer: Callable[[Any], Any]) -> Response:
        body = await request.body()

        def run() -> bytes:
            return json.dumps(answer(_parsed(body)), allow_nan=False).encode()

        content = await asyncio.get_running_loop().run_in_executor(pool, run)
        return Response(content, media_type="application/json")

    @app.get("/", response_class=HTMLResponse, tags=["people"])
    async def how_to_call(request: Request) -> HTMLResponse:
        """How to call this server."""
        content = home.replace(ADDRESS, escape(str(request.base_url)[:200]))
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return HTMLResponse(content, headers={"Content-Security-Policy": policy})

    @app.get("/v2/models/{model_name}", tags=["inference protocol"], responses=_problems(404))
    async def model_metadata(model_name: str) -> ModelMetadata:
        """What the model takes and gives."""
        _check_name(model_name, served.name)
        return metadata(served)

    @app.post(
        "/v2/models/{model_name}/infer",
        tags=["inference protocol"],
        responses={200: {"model": InferResponse}, **_problems(400, 404, 408, 413, 422, 503)},
        openapi_extra=_body({"$ref": "#/components/schemas/InferRequest"}),
    )
    async def model_infer(model_name: str, request: Request) -> Response:
        """Predict rows given as tensors; ``parameters.coverage`` says how wide intervals are."""
        _check_name(model_name, served.name)
        return await work(request, lambda x: infer(served, InferRequest.model_validate(x)))

    def predicted(content: Any) -> list[dict[str, Any]]:
        asked = PredictRequest.model_validate(content)
        found = served.predict(served.values.from_rows(asked.rows), asked.coverage)
        rows = zip(*(found[key] for key in OUTPUTS), strict=True)
        return [dict(zip(OUTPUTS, row, strict=True)) for row in rows]

    @app.post(
        "/predict",
        tags=["people"],
        responses={200: {"model": list[Prediction]}, **_problems(400, 408, 413, 422, 503)},
        openapi_extra=_body(_rows_schema(served.values)),
    )
    async def predict(request: Request) -> Response:
        """Predict rows given by column name; null is a missing value."""
        return await work(request, predicted)


def _parsed(body: bytes) -> Any:
    """JSON without NaN, infinities and deep nesting."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as problem:
        raise HTTPException(400, f"the body is no JSON: {problem}") from problem


def _check_name(given: str, name: str) -> None:
    if given != name:
        raise HTTPException(404, f"no model {given[:80]!r}: this server has {name!r}")


async def _http_error(request: Request, problem: Any) -> Response:
    text = str(problem.detail)
    if text == "Not Found":
        text = f"no path {request.url.path[:80]!r}: GET / says what there is"
    return error(problem.status_code, text, problem.headers)


async def _input_error(_request: Request, problem: Any) -> Response:
    return error(422, str(problem))


async def _validation_error(_request: Request, problem: Any) -> Response:
    first = problem.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:80] for part in first["loc"]) or "the body"
    return error(422, f"{place}: {first['msg']}")


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Problem} for code in codes}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _rows_schema(values: ColumnValues) -> dict[str, Any]:
    """JSON Schema of `PredictRequest` with the columns of the model."""
    types: dict[str, dict[str, Any]] = {
        "number": {"type": ["number", "null"]},
        "category": {"type": ["string", "number", "boolean", "null"]},
        "date": {"type": ["string", "null"], "format": "date", "examples": ["2026-02-28"]},
    }
    columns: dict[str, dict[str, Any]] = {}
    for name, kind, code in zip(values.names, values.kinds, values.encoding.codes, strict=True):
        columns[name] = dict(types[kind])
        if isinstance(code, LevelCodes) and code.open:
            columns[name]["examples"] = list(map(str, code.numbers))[:5]
        elif isinstance(code, LevelCodes):
            columns[name] = {"enum": [*map(str, code.numbers), None]}
    row = {
        "type": "object",
        "properties": columns,
        "required": list(values.names),
        "additionalProperties": False,
    }
    schema = PredictRequest.model_json_schema()
    schema["properties"]["rows"]["items"] = row
    return schema


def _openapi(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
            template = "#/components/schemas/{model}"
            _, more = models_json_schema([(InferRequest, "validation")], ref_template=template)
            schema["components"]["schemas"].update(more["$defs"])
            app.openapi_schema = schema
        return app.openapi_schema

    return openapi
