"""A page that says how to call the server, with an example that works."""

import json
from html import escape

from tensorlace.columns.encoding import LevelCodes
from tensorlace.serve.model import ServedModel

__all__ = ["ADDRESS", "page"]

ADDRESS = "http://address/"
"""Placeholder of the address by which the browser calls the server."""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
pre { background: #f3f4f6; padding: .8rem 1rem; border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #e3e5e8;
  vertical-align: top }
"""

_GIVE = {"number": "a number", "category": "text", "date": 'a date such as "2026-02-28"'}

_PATHS = (
    ("POST /predict", "rows in, predictions out"),
    ("POST /v2/models/{name}/infer", "the same with tensors (Open Inference Protocol)"),
    ("GET /v2/models/{name}", "names, types and shapes of these tensors"),
    ("GET /v2/health/live, /v2/health/ready", "for load balancers"),
    ("GET /openapi.json", "all of this for programs"),
)


def page(model: ServedModel) -> str:
    """HTML of ``GET /``, with `ADDRESS` in it; no script, nothing from elsewhere."""
    row = model.example()
    found = model.predict(model.values.from_rows([row]), 0.9)
    answer = [
        {k: x[0] if isinstance(x[0], str) else float(f"{x[0]:.6g}") for k, x in found.items()}
    ]
    body = json.dumps({"rows": [row], "coverage": 0.9}, ensure_ascii=False)
    quoted = body.replace("'", "'\\''")
    call = f"curl -s {ADDRESS}predict -d '{quoted}'"
    columns = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_give(model, d, kind))}</td></tr>"
        for d, (name, kind) in enumerate(zip(model.values.names, model.values.kinds, strict=True))
    )
    paths = "".join(
        f"<tr><td><code>{escape(path.format(name=model.name))}</code></td><td>{what}</td></tr>"
        for path, what in _PATHS
    )
    what = f"Predicts {escape(model.target)}" if model.target else "Predicts"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(model.name)} · tensorlace</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>
<h1>{escape(model.name)}</h1>
<p>{what} from {len(model.values.names)} columns. Every answer has a mean, a standard deviation and
an interval that a new value is in with the coverage asked for; <code>novelty</code> above 1 means
that the row is unlike those of training, and <code>unlike</code> says why.</p>
<h2>Try it</h2>
<pre>{escape(call)}</pre>
<pre>{escape(json.dumps(answer))}</pre>
<h2>Columns</h2>
<p>Any value may be null: it is missing.</p>
<table><tr><th>column</th><th>value</th></tr>{columns}</table>
<h2>Paths</h2>
<table>{paths}</table>
</body></html>
"""


def _give(model: ServedModel, d: int, kind: str) -> str:
    code = model.values.encoding.codes[d]
    if not isinstance(code, LevelCodes) or not code.numbers:
        return _GIVE[kind]
    some = [str(level) for level in code.numbers]
    known = ", ".join(some[:8]) + (f" and {len(some) - 8} more" if len(some) > 8 else "")
    return f"{known}; or a new category" if code.open else f"one of {known}"
