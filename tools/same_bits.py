"""Does a change alter any result? Small fits with two checkouts, compared to the bit.

::

    python tools/same_bits.py BEFORE AFTER [--only NAME ...] [--jobs 2]

BEFORE and AFTER are folders of two checkouts, such as those of ``git worktree add``. Every case
runs in a fresh process for each of them, with the same data, the same interpreter and the same
libraries; only ``PYTHONPATH`` says whose modules are imported. What comes out (predictions and
their distributions, draws, evidence, explanations, texts, the saved model) is reduced to SHA-256
digests, and the digests of both sides are compared. Where numbers differ, the table tells by how
much: the largest difference of two entries, relative to the larger one. The exit status is 1 if
anything differs, or fails: what fails on both sides proves nothing.

Digests are never kept: other processors and other versions of NumPy have other last bits.

The script needs the requirements of the tests; a case whose libraries are missing is skipped, and
the table says so. It uses only what users import, so that internal modules may have other names in
the two checkouts. Compared systems are looked for in ``tensorlace.baselines`` and then in
``tensorlace_lab.systems``; the few functions without a public name, such as ``compact``, are looked
for by that name in all modules.

What varies from run to run or with the version is left out: of a model file the seconds that fits
took, and the version of tensorlace; of an ONNX graph that version; of a report its date, its
versions and its timings. The rest of a model file (its text, and every array with type, shape and
bytes) is compared, and so is what a model says after ``save`` and ``load``.
"""

import argparse
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SIDES = ("before", "after")

TIMEOUT = 600.0
"""Seconds after which a case counts as failed."""

_TIMES = {"seconds", "mean_fit_time"}
"""Names of what a clock has measured, in tables of results."""

_SHOWN = 4
"""Results that differ named in the table."""


# ------------------------------------------------------------------------------------ what is kept


class Split(NamedTuple):
    """Rows to fit to, and new ones."""

    X: Any
    y: Any
    X_new: Any
    y_new: Any


@dataclasses.dataclass
class Case:
    """One line of the table.

    Attributes
    ----------
    run : callable
        Does it, and keeps its results.
    needs : tuple of str
        Modules, or "compiler", without which it is skipped.
    """

    run: "Callable[[Record], None]"
    needs: tuple[str, ...]

    @property
    def missing(self) -> list[str]:
        """What it needs and is not there."""
        return [name for name in self.needs if not _is_there(name)]


CASES: dict[str, Case] = {}


def case(*needs: str) -> "Callable[[Callable[[Record], None]], Callable[[Record], None]]":
    """Make a function one of the `CASES`, under its own name."""

    def register(run: "Callable[[Record], None]") -> "Callable[[Record], None]":
        CASES[run.__name__] = Case(run, needs)
        return run

    return register


def _is_there(name: str) -> bool:
    if name == "compiler":
        return any(map(shutil.which, ("cc", "gcc", "clang")))
    return importlib.util.find_spec(name) is not None


class Record:
    """Results of a case, by name.

    Parameters
    ----------
    checkout : Path
        Whose modules are imported.
    folder : Path
        For files that the case makes.
    """

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.checkout, self.folder = checkout, folder
        self.results: dict[str, Any] = {}
        self.optional: list[str] = []

    def keep(self, name: str, value: Any, *, optional: bool = False) -> None:
        """Add a result: numbers, text, or anything whose ``repr`` says all of it.

        An ``optional`` one is compared where both sides have it.
        """
        if name in self.results:
            raise ValueError(f"two results are called {name!r}")
        if not isinstance(value, str):
            value = np.asarray(value)
            if value.dtype.kind not in "biuf":
                value = "\n".join(map(repr, value.ravel().tolist()))
        self.results[name] = value
        if optional:
            self.optional.append(name)

    def distribution(self, label: str, dist: Any, y: Any) -> None:
        """All that a predictive distribution can be asked for."""
        from tensorlace import metrics

        self.keep(f"{label}/dist", type(dist).__name__)
        for name in ("means", "epistemic_stds", "aleatoric_stds", "weights"):
            self.keep(f"{label}/dist.{name}", getattr(dist, name))
        for name in ("mean", "std", "epistemic_std", "aleatoric_std"):
            self.keep(f"{label}/{name}", getattr(dist, name))
        self.keep(f"{label}/quantile", dist.quantile([0.025, 0.5, 0.9]))
        for name in ("cdf", "logpdf", "crps"):
            self.keep(f"{label}/{name}", getattr(dist, name)(y))
        self.keep(f"{label}/sample", dist.sample(2, rng=0))
        for name, score in metrics.summary(y, dist).items():
            self.keep(f"{label}/score {name}", score)

    def answers(self, label: str, model: Any, X: Any, y: Any) -> None:
        """What a fitted model says of rows, and of itself in numbers."""
        self.distribution(label, model.predict_dist(X), y)
        self.keep(f"{label}/predict", model.predict(X))
        self.keep(f"{label}/predict, std", model.predict(X, return_std=True))
        self.keep(f"{label}/sample_y", model.sample_y(X, 3, random_state=1))
        self.keep(f"{label}/interval", model.predict_interval(X, 0.8))
        self.keep(f"{label}/quantiles", model.predict_quantiles(X))
        self.keep(f"{label}/extrapolated", model.extrapolated(X))
        names = ("log_evidence_", "noise_precision_", "weights_", "kinds_")
        for name in (*names, "n_rows_", "n_iter_", "n_dropped_", "n_pruned_"):
            self.keep(f"{label}/{name}", getattr(model, name))
        for name in ("search_results_", "noise_results_"):
            self.table(f"{label}/{name}", getattr(model, name))
        if model.check_ is not None:
            for field in dataclasses.fields(model.check_):
                self.keep(f"{label}/check_.{field.name}", getattr(model.check_, field.name))
        self.keep(f"{label}/relevance_", model.relevance_)
        for d in {0, model.n_features_in_ - 1}:
            self.effects(f"{label}/effect of column {d}", model.partial_effects(d, n_points=5))

    def model(self, label: str, model: Any, X: Any, y: Any) -> None:
        """All that a fitted model says, saved and read again as well."""
        from tensorlace import ModelFileError, load, save

        self.answers(label, model, X, y)
        self.keep(f"{label}/summary", str(model.summary()))
        path = self.folder / f"{re.sub(r'[^a-z0-9]+', '-', label.lower())}.tlace"
        try:
            save(model, path, notes={"case": label})
        except ModelFileError as error:  # that a model cannot be saved is a result, too
            self.keep(f"{label}/file", str(error))
            return
        self.file(f"{label}/file", path)
        again = load(path)
        self.keep(f"{label}/loaded predict, std", again.predict(X, return_std=True))
        self.keep(f"{label}/loaded sample_y", again.sample_y(X, 2))

    def effects(self, label: str, effects: Any) -> None:
        """Average response along a column."""
        for name in ("grid", "mean", "std", "lower", "upper"):
            self.keep(f"{label}, {name}", getattr(effects, name))

    def table(self, label: str, table: Any) -> None:
        """Columns of a data frame, or of a list of rows, but for what a clock has measured."""
        if table is None:
            self.keep(label, "None")
            return
        lines = table.to_dict("records") if hasattr(table, "to_dict") else table
        for name in lines[0]:
            if name not in _TIMES:
                self.keep(f"{label}.{name}", [line[name] for line in lines])

    def file(self, label: str, path: Path, *, optional: bool = False) -> None:
        """Content of a model file, without what varies from run to run; see `file_content`."""
        for name, value in file_content(path):
            self.keep(f"{label} {name}", value, optional=optional)


def file_content(path: Path) -> Iterator[tuple[str, Any]]:
    """Text and arrays of a model file.

    The layout is that of safetensors: length of the header, header, arrays. The model is JSON
    within the header. Seconds and the version are taken out; sizes and offsets follow from the
    rest, and the digest at the end is of all of it.
    """
    data = path.read_bytes()
    size = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:size])
    metadata = header.pop("__metadata__")
    model = json.loads(metadata.pop("model"))
    model["about"].pop("tensorlace", None)
    model["notes"].pop("seconds", None)
    measured: set[str] = set()
    model = _timeless(model, measured)
    header.pop("sha256", None)
    yield "text", json.dumps({**metadata, "model": model}, indent=1)
    kinds = {"F": "f", "I": "i", "U": "u", "B": "?"}
    for key, entry in header.items():
        if key in measured:
            continue
        start, stop = (size + offset for offset in entry["data_offsets"])
        name = entry["dtype"]
        dtype = "?" if name == "BOOL" else f"<{kinds[name[0]]}{int(name[1:]) // 8}"
        yield key, np.frombuffer(data[start:stop], dtype=dtype).reshape(entry["shape"])


def _timeless(node: Any, measured: set[str]) -> Any:
    """JSON of a model without what a clock has measured; ``measured`` gets the arrays of that."""
    if isinstance(node, list):
        return [_timeless(item, measured) for item in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        pairs = {"table": "columns", "dict": "items"}.get(node.get("type", "")) == key
        if pairs:
            times = [pair[1] for pair in value if pair[0] in _TIMES]
            measured.update(t["key"] for t in times if isinstance(t, dict) and "key" in t)
            value = [pair for pair in value if pair[0] not in _TIMES]
        out[key] = _timeless(value, measured)
    return out


def digest(value: Any) -> str:
    """SHA-256 of a text, or of an array with its type and shape."""
    if isinstance(value, str):
        return hashlib.sha256(b"text\0" + value.encode("utf-8", "surrogatepass")).hexdigest()
    found = hashlib.sha256(f"{value.dtype.str}{value.shape}\0".encode())
    found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


# ------------------------------------------------------------------------------------------- data


def numbers(n: int = 240, D: int = 3, seed: int = 0, noise: str = "normal") -> Split:
    """Columns of numbers, a smooth response, and 30 new rows of which some are beyond the range."""
    rng = np.random.default_rng([seed, n, D])
    X = rng.uniform(-2.0, 2.0, (n + 30, D))
    f = np.sin(2.0 * X[:, 0]) * X[:, 1 % D] + 0.3 * X[:, -1] ** 2
    spread = 0.1 * np.exp(0.6 * X[:, 0]) if "varying" in noise else 0.2
    draws = rng.standard_t(3, n + 30) if "student" in noise else rng.standard_normal(n + 30)
    y = 5.0 + 2.0 * (f + spread * draws)
    X[-3:] *= 1.7
    return Split(X[:n], y[:n], X[n:], y[n:])


def mixed(n: int = 200, seed: int = 0) -> Split:
    """A data frame of every kind of column, with gaps in each, and new rows unlike the others."""
    import pandas as pd

    rng = np.random.default_rng([seed, n])
    m = n + 30
    frame = pd.DataFrame(
        {
            "x": rng.normal(0.0, 1.0, m),
            "shop": np.array(["north", "süd", "=1+1", "east"], dtype=object)[
                rng.integers(4, size=m)
            ],
            "hour": rng.integers(24, size=m).astype(float),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(90, size=m), unit="D"),
            "size": np.array(["low", "middle", "high"], dtype=object)[rng.integers(3, size=m)],
            "open": rng.integers(2, size=m).astype(bool),
            "z": rng.uniform(0.0, 5.0, m),
        }
    )
    y = np.sin(frame["x"]) + (frame["shop"] == "north") * np.cos(frame["hour"] * np.pi / 12.0)
    y = y + 0.5 * (frame["size"] == "high") + 0.2 * frame["z"] * frame["open"]
    y = y.to_numpy() + 0.1 * rng.standard_normal(m)
    for k, name in enumerate(("x", "shop", "hour", "day", "size")):
        frame.loc[k :: 17 + k, name] = None
    X, X_new = frame.iloc[:n], frame.iloc[n:].reset_index(drop=True)
    X_new.loc[0, "x"], X_new.loc[1, "shop"], X_new.loc[2, "z"] = 9.0, "west", None
    X_new.loc[3, "hour"], X_new.loc[4, "day"] = 31.0, pd.Timestamp("2027-01-01")
    return Split(X, y[:n], X_new, y[n:])


def kinds() -> dict[str, Any]:
    """Kinds of the columns of `mixed` that its types do not tell."""
    from tensorlace import Ordinal, Periodic

    return {"hour": Periodic(24), "size": Ordinal(["low", "middle", "high"])}


def regressor(**params: Any) -> Any:
    """A small model of fixed size, but for what ``params`` say."""
    from tensorlace import TNKMRegressor

    small = {"rank": 3, "n_basis": 5, "max_sweeps": 30, "random_state": 0, "n_jobs": 1}
    return TNKMRegressor(**{**small, **params})


def searching(**params: Any) -> Any:
    """A model that chooses itself, from few candidates."""
    from tensorlace import TNKMRegressor

    quick = {"time_budget": 1.0, "random_state": 0, "n_jobs": 1}
    return TNKMRegressor(**{**quick, **params})


def fitted(record: Record, label: str, split: Split, **params: Any) -> Any:
    """Fit a small model and keep what it says."""
    model = regressor(**params).fit(split.X, split.y)
    record.model(label, model, split.X_new, split.y_new)
    return model


def searched(record: Record, label: str, split: Split, **params: Any) -> Any:
    """Let a model choose itself and keep what it says."""
    model = searching(**params).fit(split.X, split.y)
    record.model(label, model, split.X_new, split.y_new)
    return model


def anywhere(name: str, first: str = "") -> Any:
    """Function by name, and by that of its ``first`` argument, whatever module it is in."""
    pattern = re.compile(rf"^def {name}\(\s*{first}", re.MULTILINE)
    for package in ("tensorlace", "tensorlace_lab"):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            for path in sorted(Path(folder).rglob("*.py"), key=lambda p: (len(p.parts), p)):
                if pattern.search(path.read_text(encoding="utf-8")):
                    parts = path.relative_to(folder).with_suffix("").parts
                    module = ".".join([package, *(p for p in parts if p != "__init__")])
                    return getattr(importlib.import_module(module), name)
    raise ImportError(f"no module of tensorlace has a function {name}")


# --------------------------------------------------------------------------------- one fitted model


def _solver(record: Record, solver: str) -> None:
    for additive in (False, True):
        label = f"{solver}, additive" if additive else solver
        fitted(record, label, numbers(), solver=solver, additive=additive)
    fitted(record, f"{solver}, many weights", numbers(40, 6), solver=solver, n_basis=8)


@case()
def solver_als(record: Record) -> None:
    """Alternating least squares, with and without additive part."""
    _solver(record, "als")


@case()
def solver_gauss_newton(record: Record) -> None:
    """Damped Gauss-Newton, with and without additive part."""
    _solver(record, "gauss_newton")


@case()
def solver_matrix_free(record: Record) -> None:
    """Gauss-Newton without its matrix, with and without additive part."""
    _solver(record, "matrix_free")


CURVATURES = ("ggn", "last", "block", "diag", "full")


@case()
def curvatures(record: Record) -> None:
    """The five Hessians, linearised."""
    for curvature in CURVATURES:
        fitted(record, curvature, numbers(), curvature=curvature)
    fitted(record, "last, chosen core", numbers(), curvature="last", core=-1, solver="als")
    fitted(record, "additive block", numbers(), curvature="block", additive=True)


@case()
def curvatures_sampled(record: Record) -> None:
    """The five Hessians, by draws of networks."""
    how = {"predictive": "sampled", "n_draws": 20}
    for curvature in CURVATURES:
        fitted(record, curvature, numbers(), curvature=curvature, **how)


@case()
def thresholds(record: Record) -> None:
    """Eigenvalues cut off, at an absolute and at a relative level."""
    for curvature in CURVATURES:
        fitted(record, f"{curvature}, 3", numbers(), curvature=curvature, threshold=3.0)
    for curvature in ("ggn", "block"):
        relative = {"threshold": 1e-4, "relative_threshold": True}
        fitted(record, f"{curvature}, relative", numbers(), curvature=curvature, **relative)
    fitted(record, "ggn, 0", numbers(), threshold=0.0)


@case()
def additive(record: Record) -> None:
    """Sums of one-column functions, with and without products."""
    fitted(record, "alone", numbers(), rank=0, additive=True)
    fitted(record, "alone, als", numbers(), rank=0, additive=True, solver="als")
    fitted(record, "with products", numbers(), additive=True, prior_groups="column_order")
    fitted(record, "of draws", numbers(), additive=True, predictive="sampled", n_draws=10)


@case("pandas")
def rotation(record: Record) -> None:
    """Principal components in place of columns of numbers."""
    fitted(record, "numbers", numbers(), rotate=True)
    fitted(record, "additive", numbers(), rotate=True, additive=True, n_members=2)
    fitted(record, "mixed", mixed(), rotate=True, columns=kinds())


@case()
def bases(record: Record) -> None:
    """Every basis with two solvers, and one per column."""
    split = numbers()
    whole = split._replace(X=np.round(split.X), X_new=np.round(split.X_new))
    scaled = {"warp": "standardise", "n_basis": 4}
    for solver in ("gauss_newton", "als"):
        for basis in ("cosine", "sine", "fourier", "chebyshev", "legendre", "bspline"):
            fitted(record, f"{basis}, {solver}", split, basis=basis, solver=solver)
        for basis in ("polynomial", "unit_polynomial"):
            fitted(record, f"{basis}, {solver}", split, basis=basis, solver=solver, **scaled)
        fitted(record, f"indicator, {solver}", whole, basis="indicator", solver=solver)
    each = {"basis": ["sine", "bspline", "fourier"], "n_basis": [4, 6, 5]}
    fitted(record, "one per column", split, **each)


@case()
def warps(record: Record) -> None:
    """Every warp, and one per column."""
    X, y, X_new, y_new = numbers()
    split = Split(np.sinh(X), y, np.sinh(X_new), y_new)
    for warp in ("minmax", "quantile", "mixed"):
        fitted(record, warp, split, warp=warp)
    fitted(record, "standardise", split, warp="standardise", basis="polynomial", n_basis=3)
    halves = Split(X / 4.0 + 0.5, y, X_new / 4.0 + 0.5, y_new)
    fitted(record, "identity", halves, warp="identity", basis="legendre")
    fitted(record, "one per column", split, warp=["minmax", "quantile", "mixed"])


@case("pandas")
def column_kinds(record: Record) -> None:
    """Numbers, categories, hours, dates, orders and truths, with gaps in each."""
    split = mixed()
    model = fitted(record, "mixed", split, columns=kinds())
    for name in split.X.columns:
        record.effects(f"effect of {name}", model.partial_effects(name, n_points=6))
    grid = model.partial_effects("shop", grid=["north", "west", None])
    record.effects("effect at values", grid)
    fitted(record, "inferred", split, columns=dict(list(kinds().items())[1:]), additive=True)
    fitted(record, "als", split, columns=kinds(), solver="als", curvature="last")
    types = {"shop": "category", "open": "boolean"}
    frames = (split.X, split.X_new)
    X, X_new = (T.astype(types).assign(day=T["day"].dt.tz_localize("UTC")) for T in frames)
    fitted(record, "other types", split._replace(X=X, X_new=X_new), columns=kinds())
    if _is_there("polars"):
        import polars as pl

        X, X_new = map(pl.from_pandas, frames)
        fitted(record, "polars", split._replace(X=X, X_new=X_new), columns=kinds())


@case()
def column_kinds_of_arrays(record: Record) -> None:
    """Kinds of columns by position, and gaps, in arrays."""
    from tensorlace import Categorical, Periodic

    split = numbers()
    coded = split._replace(X=np.round(split.X), X_new=np.round(split.X_new))
    fitted(record, "kinds", coded, columns={0: Categorical(), 2: Periodic(3.0)})
    gaps = split.X.copy()
    gaps[::9, 1] = np.nan
    fitted(record, "gaps", split._replace(X=gaps))
    words = np.array([["a", "b", "c"][k % 3] for k in range(240)], dtype=object)
    objects = np.column_stack([words, split.X[:, 0].astype(object)])
    fitted(record, "objects", Split(objects, split.y, objects[:30], split.y[:30]))


@case("pandas")
def weights(record: Record) -> None:
    """Weights of rows: whole, fractional, zero."""
    rng = np.random.default_rng(7)
    for label, split in (("numbers", numbers()), ("mixed", mixed())):
        for what, w in (("whole", rng.integers(0, 4, len(split.y))), ("any", rng.random(200))):
            weight = np.resize(w.astype(float), len(split.y))
            model = regressor(columns=kinds() if label == "mixed" else None)
            model.fit(split.X, split.y, sample_weight=weight)
            record.model(f"{label}, {what}", model, split.X_new, split.y_new)
    split = numbers()
    model = regressor(solver="als", curvature="last")
    model.fit(split.X, split.y, sample_weight=rng.random(len(split.y)))
    record.model("als", model, split.X_new, split.y_new)


@case()
def single_precision(record: Record) -> None:
    """Rows in single precision."""
    for solver in ("als", "gauss_newton", "matrix_free"):
        fitted(record, solver, numbers(1500), solver=solver, row_dtype="float32")


@case("compiler")
def compiled(record: Record) -> None:
    """Routines in C, for the fit and for predictions."""
    split = numbers(1500)
    for solver in ("als", "gauss_newton", "matrix_free"):
        fitted(record, solver, split, solver=solver, engine="compiled")
    fitted(record, "single precision", split, solver="als", engine="compiled", row_dtype="float32")
    other = {"basis": "legendre", "additive": True, "curvature": "last"}
    fitted(record, "legendre", split, solver="als", engine="compiled", **other)
    fitted(record, "members", split, engine="compiled", n_members=2, rotate=True)
    fitted(record, "last", split, engine="compiled", curvature="last")
    fitted(record, "draws", split, engine="compiled", predictive="sampled", n_draws=10)


@case()
def precisions(record: Record) -> None:
    """Noise and prior precisions by evidence, by variational inference, and fixed."""
    for noise in ("evidence", "vi", 4.0):
        for prior in ("evidence", "vi", 0.1):
            how = {"noise_precision": noise, "prior_precision": prior}
            fitted(record, f"noise {noise}, prior {prior}", numbers(), **how)
    fitted(record, "flat prior", numbers(), prior_precision=0, n_basis=3, rank=1)
    last = {"noise_precision": "vi", "prior_precision": "vi", "curvature": "last"}
    fitted(record, "last core", numbers(), solver="als", **last)


@case()
def prior_groups(record: Record) -> None:
    """Every way to share prior precisions; what they switch off is pruned."""
    for groups in ("all", "column", "order", "column_order", "rank"):
        fitted(record, groups, numbers(), prior_groups=groups)
    fitted(record, "order, additive", numbers(), prior_groups="order", additive=True)
    fitted(record, "too large", numbers(), prior_groups="column_order", rank=8, n_basis=12)


@case()
def pruning(record: Record) -> None:
    """What the rows do not want, taken out of a model."""
    X, y, X_new, y_new = numbers()
    rng = np.random.default_rng(3)
    X, X_new = (np.column_stack([T, rng.uniform(size=len(T))]) for T in (X, X_new))
    split = Split(X, y, X_new, y_new)
    for groups in ("rank", "column_order"):
        for curvature in ("ggn", "block", "diag"):
            how = {"prior_groups": groups, "curvature": curvature, "rank": 6}
            fitted(record, f"{groups}, {curvature}", split, **how)


@case()
def members(record: Record) -> None:
    """Independent restarts in an equal mixture, also side by side."""
    split = numbers()
    fitted(record, "one thread", split, n_members=3)
    fitted(record, "two threads", split, n_members=3, n_jobs=2)
    fitted(record, "als", split, n_members=3, solver="als", curvature="last", n_jobs=2)


@case()
def grown_rows(record: Record) -> None:
    """Fits that begin on a part of the rows."""
    split = numbers(40_000)
    how = {"rank": 2, "n_basis": 4, "grow_rows": True, "max_sweeps": 12}
    fitted(record, "auto", split, **how)
    fitted(record, "als", split, solver="als", curvature="last", **how)


@case()
def paper(record: Record) -> None:
    """The configuration of the paper."""
    from tensorlace import TNKMRegressor

    split = numbers()
    for threshold in (None, 1e-3):
        model = TNKMRegressor.paper(4, 4, threshold, random_state=0, n_jobs=1)
        record.model(f"threshold {threshold}", model.fit(split.X, split.y), *split[2:])
    drawn = TNKMRegressor.paper(3, 4, 1e-3, random_state=0, predictive="sampled", n_draws=15)
    record.model("draws", drawn.fit(split.X, split.y), *split[2:])


@case("pandas")
def calibration(record: Record) -> None:
    """Calibrated intervals and quantiles, and what held-out rows say."""
    split, held = numbers(), numbers(120, seed=1)
    model = regressor().fit(split.X, split.y)
    for label, weight in (("calibrated", None), ("weighted", np.arange(120) % 4.0)):
        model.calibrate(held.X, held.y, sample_weight=weight)
        record.model(label, model, split.X_new, split.y_new)
        for field in dataclasses.fields(model.calibration_):
            record.keep(f"{label}/{field.name}", getattr(model.calibration_, field.name))
        found = model.check_calibration(split.X_new, split.y_new)
        for field in dataclasses.fields(found):
            record.keep(f"{label}/found {field.name}", getattr(found, field.name))
    frame = mixed()
    mixture = regressor(columns=kinds(), n_members=2).fit(frame.X[:120], frame.y[:120])
    mixture.calibrate(frame.X[120:], frame.y[120:])
    record.model("mixed", mixture, frame.X_new, frame.y_new)


@case()
def files(record: Record) -> None:
    """Model files without training rows, and models of files that are saved again."""
    from tensorlace import load, save

    split = numbers()
    state = np.random.RandomState(4)
    model = regressor(n_members=2, prior_groups="column", random_state=state)
    model.fit(split.X, split.y)
    for background in (True, False):
        path = record.folder / f"background-{background}.tlace"
        save(model, path, notes={"a": 1.5, "b": None}, background=background)
        record.file(f"background {background}", path)
        again = load(path)
        record.keep(f"background {background}, summary", str(again.summary()))
        save(again, path)
        record.file(f"background {background}, again", path)


@case()
def golden_files(record: Record) -> None:
    """Model files that are kept with the tests of each checkout."""
    import pandas as pd

    from tensorlace import load

    found = {path.name: path for path in _walk(record.checkout, "golden-*.tlace")}
    if not found:
        raise FileNotFoundError("there is no golden-*.tlace in the checkout")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "x": rng.uniform(-2.5, 2.5, 20),
            "shop": np.array(["north", "süd", "west", None], dtype=object)[
                rng.integers(4, size=20)
            ],
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(20) * 2, unit="D"),
            "hour": rng.uniform(0.0, 30.0, 20),
        }
    )
    rows.loc[::6, "x"] = np.nan
    y = np.linspace(-1.0, 2.0, 20)
    for name, path in sorted(found.items()):
        record.file(f"{name} itself", path)
        model = load(path)
        record.answers(name, model, rows, y)
        record.model(f"{name}, read", getattr(model, "best_estimator_", model), rows, y)
    record.optional.extend(record.results)  # one checkout may have more files


def _walk(folder: Path, pattern: str) -> Iterator[Path]:
    """Files of a checkout, but for what is hidden or built."""
    for parent, folders, _ in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name not in ("out", "build")]
        yield from Path(parent).glob(pattern)


# ------------------------------------------------------------------------------ rows outside memory


def _large() -> Split:
    """More rows than a piece of a stream has."""
    return numbers(70_000, 2)


def _streamed(**params: Any) -> Any:
    small = {"rank": 2, "n_basis": 4, "solver": "als", "curvature": "last", "max_sweeps": 4}
    return regressor(**{**small, **params})


def _on_disk(folder: Path, split: Split) -> dict[str, Path]:
    """The rows as Parquet, as CSV and as npy."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = pa.table({"a": split.X[:, 0], "b": split.X[:, 1], "y": split.y})
    paths = {name: folder / name for name in ("rows.parquet", "rows.csv", "X.npy", "y.npy")}
    pa.parquet.write_table(table, paths["rows.parquet"], row_group_size=20_000)
    pa.csv.write_csv(table, paths["rows.csv"])
    np.save(paths["X.npy"], split.X)
    np.save(paths["y.npy"], split.y)
    return paths


@case("pyarrow")
def sources(record: Record) -> None:
    """Rows from Parquet, CSV, npy, blocks and memory, read by a fit and by hand."""
    from tensorlace.sources import ArraySource, BlockSource, NpySource, open_source

    split = _large()
    paths = _on_disk(record.folder, split)

    def blocks() -> Iterator[tuple[Any, Any]]:
        for start in range(0, len(split.y), 33_333):
            yield split.X[start : start + 33_333], split.y[start : start + 33_333]

    opened = {
        "parquet": open_source(paths["rows.parquet"], "y"),
        "csv": open_source(paths["rows.csv"], "y"),
        "weights": open_source(paths["rows.parquet"], "a", features=["b"], weight="y"),
        "npy": NpySource(paths["X.npy"], paths["y.npy"]),
        "blocks": BlockSource(blocks, names=["a", "b"]),
        "memory": ArraySource(split.X, split.y, None, ("a", "b")),
    }
    for label, source in opened.items():
        record.keep(f"{label}/names", [*source.names, source.target, source.n_rows])
        chunk = next(iter(source.chunks(50_000)))
        record.keep(f"{label}/rows", chunk.X)
        record.keep(f"{label}/targets", chunk.y)
        if label != "weights":
            record.model(label, _streamed().fit_rows(source), split.X_new, split.y_new)


@case("pyarrow")
def streams(record: Record) -> None:
    """Fits that read the rows again in every pass, and fits in single precision from a file."""
    split = _large()
    paths = _on_disk(record.folder, split)
    ways = {
        "als": {},
        "gauss_newton": {"solver": "gauss_newton", "curvature": "ggn"},
        "matrix_free": {"solver": "matrix_free", "curvature": "ggn"},
        "single precision": {"row_dtype": "float32"},
        "rotated": {"rotate": True, "additive": True},
        "grown": {"grow_rows": True},
        "in memory": {"memory_budget": 1 << 30},
    }
    for label, params in ways.items():
        model = _streamed(**{"memory_budget": 0, "n_jobs": 2, **params})
        model.fit_rows(paths["rows.parquet"], "y")
        record.model(label, model, split.X_new, split.y_new)


@case("pyarrow")
def checkpoints(record: Record) -> None:
    """Fits that are interrupted and go on."""
    split = _large()
    path = _on_disk(record.folder, split)["rows.parquet"]
    for solver in ("als", "gauss_newton"):
        place = record.folder / f"checkpoint-{solver}"
        how = {"solver": solver, "n_members": 2}
        _streamed(**how, max_sweeps=3).fit_rows(path, "y", checkpoint=place)
        for member in range(2):
            with np.load(f"{place}.{member}.npz") as saved:
                for name in sorted(set(saved.files) - {"key"}):
                    record.keep(f"{solver}/checkpoint {member}, {name}", saved[name])
        model = _streamed(**how, max_sweeps=6).fit_rows(path, "y", checkpoint=place)
        record.model(solver, model, split.X_new, split.y_new)


@case("distributed", "dask", "pyarrow")
def cluster(record: Record) -> None:
    """A Dask cluster of two workers: a file, arrays and a data frame."""
    import dask.array as da
    import dask.dataframe as dd
    import distributed

    split = _large()
    path = _on_disk(record.folder, split)["rows.parquet"]
    how = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    local = distributed.LocalCluster(**how, silence_logs=50, local_directory=str(record.folder))
    with local, distributed.Client(local) as client:
        model = _streamed().fit_rows(path, "y", client=client)
        record.model("file", model, split.X_new, split.y_new)
        X, y = (da.from_array(a, chunks=(30_000, *a.shape[1:])) for a in split[:2])
        model = _streamed(solver="gauss_newton", curvature="ggn").fit(X, y)
        record.model("arrays", model, split.X_new, split.y_new)
        for name, lazy in zip(("mean", "std"), model.predict(X, return_std=True), strict=True):
            record.keep(f"arrays/lazy {name}", lazy.compute())
        frame = dd.read_parquet(path)
        model = _streamed().fit(frame[["a", "b"]], frame["y"])
        record.keep("frame/predict", model.predict(frame[["a", "b"]]).compute())


# --------------------------------------------------------------------------- models that are chosen


@case("pandas")
def search_few(record: Record) -> None:
    """A choice by cross-validation, of two seeds and with more candidates."""
    searched(record, "seed 0", numbers(150))
    searched(record, "seed 1", numbers(150, 4, seed=1), random_state=1, time_budget=3.0)


@case("pandas")
def search_tiny(record: Record) -> None:
    """So few rows that little can be chosen."""
    for n in (3, 12, 30, 90):
        searched(record, f"{n} rows", numbers(n, 2), time_budget=0.5)
    searched(record, "student", numbers(30, 2), time_budget=0.5, noise="student")
    searched(record, "budget by rows", numbers(10, 2), time_budget=None)


@case("pandas")
def search_noise(record: Record) -> None:
    """Every kind of noise, on rows that have it."""
    for noise in ("auto", "gaussian", "student", "varying", "varying_student"):
        split = numbers(160, 2, noise="varying_student" if noise == "auto" else noise)
        searched(record, noise, split, noise=noise, time_budget=0.5)


@case("pandas")
def search_many(record: Record) -> None:
    """A choice by rows that are held out."""
    searched(record, "auto", numbers(2800))


@case("pandas")
def search_many_noise(record: Record) -> None:
    """Held-out rows and noise that varies, with heavy tails."""
    split = numbers(2600, 2, noise="varying_student")
    searched(record, "varying_student", split, noise="varying_student", time_budget=0.5)
    searched(record, "student", split, noise="student", time_budget=0.5)


@case("pandas")
def search_many_last(record: Record) -> None:
    """Held-out rows and a posterior of one core, or a truncated one."""
    searched(record, "last", numbers(2600, 2), curvature="last", time_budget=0.5)
    searched(record, "threshold", numbers(2600, 2), threshold=1e-3, time_budget=0.5)


@case("pandas")
def search_mixed(record: Record) -> None:
    """Choices for every kind of column, on few rows."""
    searched(record, "frame", mixed(160), columns=kinds())


@case("pandas")
def search_mixed_many(record: Record) -> None:
    """Choices for every kind of column, on many rows."""
    searched(record, "frame", mixed(2600), columns=kinds(), time_budget=0.5)


@case("pandas")
def search_processes(record: Record) -> None:
    """Candidates that other processes fit."""
    given = {"n_basis": 4, "warp": "minmax", "additive": False, "rotate": False, "n_members": 4}
    searched(record, "two processes", numbers(210, 2), n_jobs=2, time_budget=10.0, **given)


@case("pandas")
def search_threads(record: Record) -> None:
    """Candidates that two threads fit."""
    searched(record, "few", numbers(150, 2), n_jobs=2, time_budget=0.5)
    searched(record, "many", numbers(2600, 2), n_jobs=2, time_budget=0.3)


@case("pandas")
def search_given(record: Record) -> None:
    """Choices that are partly made: size, warp, parts, basis, solver, number of members."""
    given = {"n_basis": 4, "warp": "minmax", "additive": False, "n_members": 2}
    searched(record, "size", numbers(120), **given, time_budget=0.5)
    given = {"basis": "legendre", "rotate": True, "prior_groups": "column", "solver": "als"}
    searched(record, "style", numbers(120), **given, time_budget=0.5, max_sweeps=5)
    searched(record, "draws", numbers(120), predictive="sampled", n_draws=5, time_budget=0.5)
    searched(record, "single", numbers(120), row_dtype="float32", n_members=1, time_budget=0.5)


@case("pandas")
def search_plain(record: Record) -> None:
    """Rows that a straight line, or a constant, explains."""
    X, y, X_new, y_new = numbers(150)
    slope = np.array([1.0, -2.0, 0.5])
    line = Split(X, X @ slope + 0.05 * y, X_new, X_new @ slope + 0.05 * y_new)
    rng = np.random.default_rng(5)
    nothing = Split(X, rng.standard_normal(150), X_new, rng.standard_normal(30))
    searched(record, "line", line, time_budget=0.5)
    searched(record, "nothing", nothing, time_budget=0.5)


@case("pandas")
def search_weights(record: Record) -> None:
    """Choices by weighted rows."""
    rng = np.random.default_rng(2)
    for label, split in (("few", numbers(130)), ("many", numbers(2600, 2))):
        model = searching(time_budget=0.5)
        model.fit(split.X, split.y, sample_weight=rng.integers(0, 3, len(split.y)).astype(float))
        record.model(label, model, split.X_new, split.y_new)


@case("pyarrow", "pandas")
def search_file(record: Record) -> None:
    """A choice by some of the rows of a file."""
    split = numbers(8000, 2)
    path = _on_disk(record.folder, split)["rows.parquet"]
    model = searching(time_budget=0.3, n_members=2).fit_rows(path, "y")
    record.model("parquet", model, split.X_new, split.y_new)


def cross_validated(own: dict[str, Any], passed_on: dict[str, Any]) -> Any:
    """`TNKMRegressorCV` with arguments of its own and those of the model that it fits.

    The latter are its arguments, or those of its ``estimator``, whichever it has.
    """
    from tensorlace import TNKMRegressor, TNKMRegressorCV

    known = inspect.signature(TNKMRegressorCV).parameters
    if "estimator" not in known:
        return TNKMRegressorCV(**own, **passed_on)
    curvatures = own.get("curvature", "last")
    one = curvatures if isinstance(curvatures, str) else curvatures[0]
    shared = {name: own[name] for name in ("random_state", "n_jobs")}
    estimator = TNKMRegressor.paper(2, 2, n_members=1, curvature=one, **shared, **passed_on)
    outer = {name: value for name, value in own.items() if name in known}
    if "curvatures" in known:
        outer["curvatures"] = [curvatures] if isinstance(curvatures, str) else curvatures
    return TNKMRegressorCV(estimator=estimator, **outer)


@case("pandas")
def cross_validation(record: Record) -> None:
    """The paper's selection, as it is and with other models, also of a mixed table."""
    split, frame = numbers(120), mixed(120)
    grid = {"ranks": [1, 3], "n_bases": [2, 4], "random_state": 0, "n_jobs": 2}
    ways = {
        "paper": (split, grid, {"tol": 1e-3, "max_sweeps": 20}),
        "curvatures": (
            split,
            {**grid, "curvature": ["ggn", "diag"], "thresholds": [None, 1e-2], "n_repeats": 1},
            {"basis": "cosine", "warp": "mixed", "solver": "gauss_newton", "max_sweeps": 20},
        ),
        "frame": (
            frame,
            {**grid, "n_splits": 2, "n_repeats": 1, "max_weights": None},
            {"columns": kinds(), "noise_precision": "evidence", "max_sweeps": 10},
        ),
    }
    for label, (rows, own, passed_on) in ways.items():
        model = cross_validated(own, passed_on).fit(rows.X, rows.y)
        record.keep(f"{label}/best_params_", repr(sorted(model.best_params_.items())))
        record.keep(f"{label}/best_score_", model.best_score_)
        for name, values in model.cv_results_.items():
            if name not in _TIMES:
                record.keep(f"{label}/cv_results_ {name}", values)
        record.model(f"{label}, best", model.best_estimator_, rows.X_new, rows.y_new)
        record.answers(label, model, rows.X_new, rows.y_new)
        _saved(record, label, model, rows)


def _saved(record: Record, label: str, model: Any, rows: Split) -> None:
    """Save and load a `TNKMRegressorCV`, whose file holds its arguments, whatever they are."""
    from tensorlace import ModelFileError, load, save

    path = record.folder / f"cv-{label}.tlace"
    try:
        save(model, path)
    except ModelFileError as error:
        record.keep(f"{label}/loaded", str(error))
        return
    record.keep(f"{label}/loaded", load(path).predict(rows.X_new, return_std=True))
    how = ", ".join(sorted(type(model)().get_params(deep=False)))
    record.file(f"{label}/file of arguments {digest(how)[:8]}", path, optional=True)


# ------------------------------------------------------------------------- what is made of a model


@case()
def distributions(record: Record) -> None:
    """Normals, mixtures and samples by themselves, and all scores of them."""
    from tensorlace import Mixture, Normal, Samples, metrics

    rng = np.random.default_rng(0)
    mu, e, a = rng.standard_normal((4, 25)), rng.random((4, 25)), rng.random((4, 25))
    w = rng.dirichlet(np.ones(4), 25).T
    y, weight = rng.standard_normal(25), rng.random(25)
    found = {
        "normal": Normal(mu[0], e[0], a[0]),
        "mixture": Mixture(mu, e, a, [0.1, 0.2, 0.3, 0.4]),
        "by row": Mixture(mu, e, a, w / w.sum(axis=0)),
        "points": Mixture(mu, 0.0, 0.0, [0.1, 0.2, 0.3, 0.4]),
        "moved": Normal(mu[0], e[0], a[0]).affine(2.5, -1.0)[3:],
    }
    for label, dist in found.items():
        record.distribution(label, dist, y[-len(dist) :])
    samples = Samples(mu)
    record.keep("samples/quantile", samples.quantile([0.1, 0.5, 0.9]))
    record.keep("samples/cdf", samples.cdf(y))
    for label, dist in (("normal", found["normal"]), ("samples", samples)):
        for name in ("rmse", "crps", "coverage", "width", "calibration_error"):
            score = getattr(metrics, name)
            record.keep(f"{label}/metric {name}", score(y, dist))
            record.keep(f"{label}/metric {name}, weighted", score(y, dist, sample_weight=weight))
        record.keep(f"{label}/metric pit", metrics.pit(y, dist))
        record.keep(f"{label}/metrics", [*metrics.summary(y, dist, sample_weight=weight).values()])


@case("pandas")
def compacted(record: Record) -> None:
    """Models made smaller."""
    compact, n_bytes, deviation = map(anywhere, ("compact", "n_bytes", "deviation"))
    split, frame = numbers(), mixed(120)
    models = {
        "one": (regressor(rank=6, n_basis=8).fit(split.X, split.y), split),
        "members": (regressor(n_members=3).fit(split.X, split.y), split),
        "mixture": (searching(columns=kinds(), time_budget=0.3).fit(frame.X, frame.y), frame),
    }
    for label, (model, rows) in models.items():
        size = n_bytes(model)
        record.keep(f"{label}/bytes", size)
        small = compact(model, size // 4)
        record.keep(f"{label}/bytes of the small one", n_bytes(small))
        record.model(label, small, rows.X_new, rows.y_new)
        away = deviation(small.predict_dist(rows.X_new), model.predict_dist(rows.X_new))
        record.keep(f"{label}/deviation", dataclasses.astuple(away))


def _explained() -> dict[str, tuple[Any, Split]]:
    """Models of which graphs and reports are made."""
    split, frame = numbers(), mixed(120)
    rotated = {"rotate": True, "additive": True, "warp": "quantile"}
    found = {
        "numbers": (regressor(**rotated), split),
        "last": (regressor(curvature="last", threshold=1e-3, basis="bspline"), split),
        "polynomial": (regressor(basis="unit_polynomial", warp="standardise"), split),
        "mixed": (regressor(columns=kinds(), n_members=2), frame),
        "mixture": (searching(columns=kinds(), time_budget=0.3, noise="varying_student"), frame),
    }
    for model, rows in found.values():
        model.fit(rows.X, rows.y)
    return found


@case("onnx", "onnxruntime", "pandas")
def onnx_graphs(record: Record) -> None:
    """Models as ONNX graphs, byte by byte but for the version, and what these compute."""
    import onnxruntime

    from tensorlace.export import onnx_inputs, to_onnx

    for label, (model, rows) in _explained().items():
        graph = to_onnx(model, target="y")
        graph.producer_version = ""
        kept = [p for p in graph.metadata_props if p.key != "tensorlace.version"]
        del graph.metadata_props[:]
        graph.metadata_props.extend(kept)
        data = graph.SerializeToString(deterministic=True)
        record.keep(label, np.frombuffer(data, dtype=np.uint8))
        tensors = onnx_inputs(model, rows.X_new)
        for name, tensor in tensors.items():
            record.keep(f"{label}/input {name}", tensor)
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        for output, value in zip(session.get_outputs(), session.run(None, tensors), strict=True):
            record.keep(f"{label}/output {output.name}", value)


_VARYING_FACTS = re.compile(
    r"<div><dt>(search|prediction|versions|written)</dt>.*?</div>", re.DOTALL
)

_SCRIPTS = re.compile(r"<script.*?</script>", re.DOTALL)


@case("jinja2", "pandas")
def reports(record: Record) -> None:
    """Reports, but for the date, the versions and what a clock has measured."""
    from tensorlace.report import write_report

    for label, (model, rows) in _explained().items():
        if label == "numbers":
            model.calibrate(rows.X[:100], rows.y[:100])
        for what, y in (("new rows", rows.y_new), ("no target", None)):
            path = record.folder / f"{label}-{what}.html"
            how = {"target": "sales", "notes": {"table": "shops.csv"}}
            write_report(model, rows.X_new, y, path, **how)
            page = path.read_text(encoding="utf-8")
            page = _VARYING_FACTS.sub("", page)
            for k, script in enumerate(_SCRIPTS.findall(page)):
                record.keep(f"{label}, {what}, script {k}", script)
            record.keep(f"{label}, {what}", _SCRIPTS.sub("", page))


@case("pandas", "pyarrow", "rich", "typer", "onnx")
def command_line(record: Record) -> None:
    """Fit, predict, evaluate, inspect and export from the command line."""
    rows = mixed(120)
    rows.X.assign(y=rows.y).to_csv(record.folder / "rows.csv", index=False)
    rows.X_new.assign(y=rows.y_new).to_csv(record.folder / "new.csv", index=False)
    columns = ["--columns", "hour=periodic:24", "--columns", "size=ordinal:low,middle,high"]
    for label, more in (("fixed", ["--rank", "3"]), ("auto", ["--time-budget", "0.3"])):
        file = f"{label}.tlace"
        words = ["fit", "rows.csv", "--target", "y", "-o", file, "--json", *columns, *more]
        record.keep(f"{label}/fit", _command(words))
        record.file(f"{label}/file", record.folder / file)
        _command(["predict", file, "new.csv", "-o", f"{label}.csv"])
        record.keep(f"{label}/predict", (record.folder / f"{label}.csv").read_text("utf-8"))
        for verb in (["evaluate", file, "new.csv"], ["inspect", file]):
            record.keep(f"{label}/{verb[0]}", _command([*verb, "--json"]))
        _command(["export", file, "-o", f"{label}.onnx"])
        record.keep(f"{label}/exported", (record.folder / f"{label}.onnx").exists())


def _command(words: Sequence[str]) -> str:
    """What a command prints, if that is JSON without seconds, sizes and versions."""
    from tensorlace.cli import main as run

    before, printed = sys.argv, StringIO()
    sys.argv = ["tensorlace", *words]
    try:
        with redirect_stdout(printed):
            run()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{' '.join(words)}: status {end.code}") from end
    finally:
        sys.argv = before
    if "--json" not in words:
        return printed.getvalue()
    found = json.loads(printed.getvalue())
    if "notes" in found:
        found["notes"].pop("seconds", None)
    varying = ("seconds", "bytes", "tensorlace")
    return json.dumps({k: v for k, v in found.items() if k not in varying}, indent=1)


# ------------------------------------------------------------------------------------ other systems


def _system(record: Record, name: str, how: str = "", **params: Any) -> None:
    """Fit a compared system; ``how`` tells several fits of one apart."""
    split, label = numbers(90, 2), f"{name} {how}".strip()
    model = getattr(_systems(), name)(random_state=3, **params).fit(split.X, split.y)
    record.distribution(label, model.predict_dist(split.X_new), split.y_new)
    record.keep(f"{label}/predict", model.predict(split.X_new))
    record.keep(f"{label}/predict, std", model.predict(split.X_new, return_std=True))
    learned = {key: value for key, value in vars(model).items() if key[-1] == "_" != key[0]}
    for key, value in sorted(learned.items()):
        if isinstance(value, float | int | np.ndarray):
            record.keep(f"{label}/{key}", value)


def _systems() -> Any:
    """Module of the compared systems."""
    for name in ("tensorlace.baselines", "tensorlace_lab.systems"):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        if module.__file__ is not None:  # a folder with nothing but a cache is a module, too
            return module
    raise ImportError("there are no compared systems")


@case()
def systems_of_kernels(record: Record) -> None:
    """The exact Gaussian process, T-KRR, QTNM and TN-GPR."""
    _system(record, "ExactGP")
    _system(record, "ExactGP", "sparse", exact_rows=50, hyper_rows=40, n_inducing=15)
    _system(record, "TKRR", n_basis=8, rank=4, n_sweeps=4)
    _system(record, "QTNM", n_basis=8, rank=4, n_sweeps=4)
    _system(record, "TNGPR", n_basis=8, n_sweeps=4)


@case()
def systems_of_networks(record: Record) -> None:
    """MF-BTN and BTN-KM."""
    _system(record, "MeanFieldBTN", sizes=((3, 4), (4, 5)), max_iter=40)
    _system(record, "BTNKM", n_basis=6, max_rank=4, max_iter=20)


@case()
def system_tensor_train(record: Record) -> None:
    """LA-TTKM with each of its Hessians."""
    how = {"sizes": ((2, 5), (3, 4)), "n_sweeps": 4}
    for curvature in CURVATURES:
        _system(record, "TTRegressor", curvature, curvature=curvature, **how)


_NEURAL = {
    "GWI": {"epochs": 60, "min_steps": 60},
    "FVI": {"epochs": 60, "min_steps": 60, "hyper_rows": 60},
    "BayesByBackprop": {"epochs": 60, "min_steps": 200, "n_draws": 20},
    "AlphaDropout": {"rates": (0.01, 0.05), "n_hidden": 20, "min_steps": 100, "epochs": 60},
    "LaplaceBNN": {"n_hidden": 20, "n_rounds": 2, "epochs": 60, "min_steps": 100},
    "StructuredBTN": {"sizes": ((3, 4),), "max_iter": 60},
}


@case("jax", "optax")
def systems_of_functions(record: Record) -> None:
    """GWI and FVI, whose priors are over functions."""
    for name in ("GWI", "FVI"):
        _system(record, name, **_NEURAL[name])


@case("jax", "optax")
def systems_of_weights(record: Record) -> None:
    """BBB, alpha dropout, LA-BNN and SP-BTN, whose priors are over weights."""
    for name in ("BayesByBackprop", "AlphaDropout", "LaplaceBNN", "StructuredBTN"):
        _system(record, name, **_NEURAL[name])


@case()
def protocols(record: Record) -> None:
    """The paper's protocol as published, with all its draws, and corrected."""
    split = numbers(60, 2)
    for name, more in (("reproduce", {"curvature": "ggn"}), ("select", {"n_jobs": 1})):
        dist, about = anywhere(name, "X")(split.X, split.y, split.X_new, **more)
        record.distribution(name, dist, split.y_new)
        record.keep(f"{name}/about", repr(sorted(about.items())))


# --------------------------------------------------------------------------- one case, one checkout


def run_case(name: str, checkout: Path, folder: Path) -> dict[str, Any]:
    """Run a case with the modules that this process finds, and keep its results in a folder.

    Returns
    -------
    dict
        ``seconds``; ``digests`` of results by name; those that are ``optional``; or what was
        ``missing``, or the ``error``.
    """
    chosen = CASES[name]
    if chosen.missing:
        return {"seconds": 0.0, "missing": chosen.missing}
    record = Record(checkout, folder)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            chosen.run(record)
        said = sorted({f"{w.category.__name__}: {w.message}" for w in caught if _ours(w.category)})
        record.keep("warnings", "\n".join(said))
        _check_origin(checkout)
    except Exception as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return {"seconds": time.perf_counter() - start, "error": text}
    spent = time.perf_counter() - start
    np.savez(folder / "results.npz", **{str(k): v for k, v in enumerate(record.results.values())})
    digests = {key: digest(value) for key, value in record.results.items()}
    return {"seconds": spent, "digests": digests, "optional": record.optional}


def _ours(category: type[Warning]) -> bool:
    return category.__module__.split(".")[0] in ("tensorlace", "tensorlace_lab", "sklearn")


def _check_origin(checkout: Path) -> None:
    """Refuse results of modules that are not those of the checkout."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.split(".")[0] not in ("tensorlace", "tensorlace_lab") or path is None:
            continue
        if not Path(path).resolve().is_relative_to(checkout):
            raise ImportError(f"{name} is {path}, which is not in {checkout}")


# ---------------------------------------------------------------------------------- both checkouts


class Outcome(NamedTuple):
    """What became of a case with one checkout; ``found`` is what `run_case` returned."""

    found: dict[str, Any]
    folder: Path

    def value(self, name: str) -> Any:
        """A result: a text or an array."""
        place = str(list(self.found["digests"]).index(name))
        with np.load(self.folder / "results.npz") as kept:
            value = kept[place]
        return str(value) if value.dtype.kind == "U" else value


def start_case(name: str, checkout: Path, folder: Path) -> Outcome:
    """Run a case in a process of its own."""
    folder.mkdir(parents=True)
    places = (checkout / "src", checkout / "lab" / "src", checkout)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(place) for place in places if place.is_dir()),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
        "XDG_CACHE_HOME": str(folder.parent / "cache"),
        "MPLBACKEND": "agg",
    }
    command = [sys.executable, "-P", str(Path(__file__).resolve()), str(checkout), str(folder)]
    start = time.perf_counter()
    log = folder / "log.txt"
    try:
        with open(log, "w", encoding="utf-8") as said:
            code = subprocess.run(
                [*command, "--run", name],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                timeout=TIMEOUT,
                check=False,
                text=True,
            )
        found = json.loads(code.stdout) if code.returncode == 0 else None
        error = f"the process ended with status {code.returncode}"
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as problem:
        found, error = None, f"{type(problem).__name__}: {problem}".splitlines()[0]
    if found is None:
        found = {"seconds": time.perf_counter() - start, "error": error}
    return Outcome(found, folder)


class Difference(NamedTuple):
    """What differs, in words; and by how much, relative to the larger value, if it is numbers."""

    text: str
    gap: float = 0.0


def differences(before: Outcome, after: Outcome) -> list[Difference]:
    """All that differs, in the order of the results."""
    sides = (before, after)
    for what in ("error", "missing"):
        told = [side.found.get(what) for side in sides]
        if told[0] == told[1] is not None:
            return [Difference(f"both: {told[0]}")] if what == "error" else []
        if told != [None, None]:
            both = zip(SIDES, told, strict=True)
            return [Difference(f"{side}: {what} {text}") for side, text in both if text]
    optional = {*before.found["optional"], *after.found["optional"]}
    old, new = (outcome.found["digests"] for outcome in sides)
    lines = []
    for name in dict.fromkeys((*old, *new)):
        if name in old and name in new:
            if old[name] != new[name]:
                how, gap = how_far(before.value(name), after.value(name))
                lines.append(Difference(f"{name}: {how}", gap))
        elif name not in optional:
            lines.append(Difference(f"{name}: only {SIDES[name in new]}"))
    return lines


def how_far(a: Any, b: Any) -> Difference:
    """How two results differ that are not the same."""
    if isinstance(a, str) or isinstance(b, str):
        return Difference(_first_difference(str(a), str(b)))
    if a.shape != b.shape or a.dtype != b.dtype:
        return Difference(f"{a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}")
    if a.dtype == np.uint8:
        return Difference(f"{np.count_nonzero(a != b):,} of {a.size:,} bytes differ")
    a, b = a.astype(np.float64), b.astype(np.float64)
    if np.any(np.isfinite(a) != np.isfinite(b)):
        return Difference("one is finite and the other is not")
    with np.errstate(all="ignore"):
        gaps = np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))
    gap = float(np.max(gaps, initial=0.0, where=np.isfinite(gaps)))
    return Difference(f"{gap:.1e}", gap)


def _first_difference(a: str, b: str) -> str:
    """Where two texts part, with a bit of what is around."""
    old, new = a.splitlines(), b.splitlines()
    line = next((k for k, (x, z) in enumerate(zip(old, new, strict=False)) if x != z), None)
    if line is None:
        return f"{len(old)} lines became {len(new)}"
    x, z = old[line], new[line]
    start = next((k for k, (c, d) in enumerate(zip(x, z, strict=False)) if c != d), 0)
    part = slice(max(start - 20, 0), start + 20)
    return f"line {line + 1}, {x[part].strip()!r} became {z[part].strip()!r}"


def compare(
    names: Sequence[str], checkouts: Sequence[Path], folder: Path, jobs: int, shown: int
) -> dict[str, list[Difference]]:
    """Run cases with both checkouts, print a table, and return what differs by case."""
    width = max(map(len, names))
    print(f"{'case':<{width}}  before   after  result", flush=True)
    found: dict[str, list[Difference]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        started = [
            [
                pool.submit(start_case, name, checkout, folder / side / name)
                for side, checkout in zip(SIDES, checkouts, strict=True)
            ]
            for name in names
        ]
        for name, pair in zip(names, started, strict=True):
            before, after = (future.result() for future in pair)
            lines = differences(before, after)
            if lines:
                found[name] = lines
            seconds = "  ".join(f"{side.found['seconds']:6.1f}" for side in (before, after))
            print(f"{name:<{width}}  {seconds}  {_verdict(lines, before, after)}", flush=True)
            for line in lines[:shown]:
                print(f"{'':<{width + 18}}{line.text}", flush=True)
            if len(lines) > shown:
                print(f"{'':<{width + 18}}and {len(lines) - shown} more", flush=True)
    return found


def _verdict(lines: Sequence[Difference], *sides: Outcome) -> str:
    if any("error" in side.found for side in sides):
        return "fails"
    if "missing" in sides[0].found:
        return f"skipped: needs {', '.join(sides[0].found['missing'])}"
    count = len(sides[0].found["digests"])
    if not lines:
        return f"same ({count} results)"
    largest = max(line.gap for line in lines)
    numbers_too = f", numbers by up to {largest:.1e}" if largest else ""
    return f"differs: {len(lines)} of {count} results{numbers_too}"


def main(arguments: Iterable[str] | None = None) -> int:
    """Compare two checkouts; 0 if nothing differs."""
    about = "\n".join(f"  {name:<20} {case.run.__doc__}" for name, case in CASES.items())
    parser = argparse.ArgumentParser(
        description="Does a change alter any result? Small fits with two checkouts, to the bit.",
        epilog=f"cases:\n{about}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", type=Path, help="folder of a checkout")
    parser.add_argument("after", type=Path, help="folder of another")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=CASES, help="only these cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (2)")
    parser.add_argument("--all", action="store_true", help="name everything that differs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep results and logs there")
    parser.add_argument("--run", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args(None if arguments is None else list(arguments))
    if options.run:  # one case with one checkout: `after` is the folder for its results
        with redirect_stdout(sys.stderr):
            found = run_case(options.run, options.before, options.after)
        print(json.dumps(found))
        return 0
    checkouts = [path.resolve() for path in (options.before, options.after)]
    for path in checkouts:
        if not (path / "src" / "tensorlace").is_dir():
            parser.error(f"{path} is no checkout: it has no src/tensorlace")
    names, start = options.only or list(CASES), time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="same-bits-") as scratch:
        folder = Path(scratch) if options.keep is None else options.keep.resolve()
        for side in SIDES if options.keep else ():
            shutil.rmtree(folder / side, ignore_errors=True)
        shown = sys.maxsize if options.all else _SHOWN
        found = compare(names, checkouts, folder, max(options.jobs, 1), shown)
    verdict = f"{len(found)} of {len(names)} cases differ" if found else "all the same to the bit"
    print(f"{len(names)} cases in {time.perf_counter() - start:.0f} s: {verdict}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
