"""Which module calls which, while a model is fitted, asked and saved.

::

    python tools/walk.py [--calls] [--picture docs/walk.svg]

Small tables go through ``TNKMRegressor(rank=4).fit``, ``TNKMRegressor(time_budget=...).fit``,
``predict_dist``, ``fit_rows`` and ``save`` while `sys.setprofile` listens, on threads too. Modules
and rooms, which are the folders and single modules of the package, are told by file names. Printed:

- calls from a room to one above it, in the order of the layers in ``pyproject.toml``; functions
  handed to a ``reduce`` of the rooms ``rows`` and ``sources`` are listed apart;
- pairs of modules that call each other both ways, in the fit of a fixed rank and in the default.

The exit status is 1 if a call goes up, or if there are more than 2 such pairs in the fit of a fixed
rank or more than 4 in the default. ``--calls`` prints every call between two rooms with its count,
``--picture`` draws them.

What counts as a call: a function of the package begins to run, and the innermost frame of the
package below it on the stack belongs to another module. Frames of other libraries between them are
looked through, so that ``functools.partial`` or a pool that works in the calling thread hide
nothing. A generator is called where it is first asked for a value, and not again where it goes on.
Properties, methods with two leading and trailing underscores, and the ``__init__`` that
``dataclass`` writes are the reading of an object rather than a call; they count only if they call
another function of the package themselves. What is mapped by the workers of a search is listed with
the functions handed to ``reduce``: the one that maps does not know what it calls.
"""

import argparse
import dis
import inspect
import sys
import tempfile
import threading
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

MOST_PAIRS = {"fixed rank": 2, "default": 4}
"""Pairs of modules that may call each other both ways, by walk."""

MAPPING_ROOMS = ("rows", "sources")
"""Rooms whose ``reduce`` is handed functions of other rooms."""

MAPPERS = {("search.parallel", "_alone"), ("rows.memory", "sum_leaf")}
"""Module and name of functions that run jobs of a pool, or a function handed to ``reduce``."""

Call = tuple[str, str]
"""Modules, without the name of the package: the one that calls and the one that is called."""


@dataclass
class Calls:
    """Calls between modules during one walk.

    Attributes
    ----------
    direct : Counter of Call
    mapped : Counter of Call
        By a ``reduce`` or a pool.
    """

    direct: "Counter[Call]" = field(default_factory=Counter)
    mapped: "Counter[Call]" = field(default_factory=Counter)

    def pairs(self) -> list[Call]:
        """Pairs of modules that call each other both ways, each once."""
        return sorted((a, b) for a, b in self.direct if a < b and (b, a) in self.direct)


class Listener:
    """Counts the calls of one package.

    Parameters
    ----------
    package : str
        Name of a package that is imported.
    rank : callable
        Height of a room by its name.
    """

    def __init__(self, package: str, rank: Callable[[str], int]) -> None:
        self._package, self._rank = package, rank
        self._folder = str(Path(str(sys.modules[package].__file__)).parent) + "/"
        self._modules: dict[CodeType, str | None] = {}
        self._reading: dict[CodeType, bool] = {}
        self._begins: dict[CodeType, int] = {}
        self._lock, self._local = threading.Lock(), threading.local()
        self.calls = Calls()

    @contextmanager
    def listening(self) -> Iterator[Calls]:
        """Count what happens meanwhile."""
        self.calls = Calls()
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)
        try:
            yield self.calls
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def _hear(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return") or self._module(frame.f_code) is None:
            return
        # frames of readings that have called something, and so count themselves
        told: set[int] = self._local.__dict__.setdefault("told", set())
        if event == "return":
            told.discard(id(frame))
            return
        if self._goes_on(frame) or self._reads(frame.f_code):
            return
        caller = self._caller(frame)
        while caller is not None:
            self._count(caller, frame)
            if not self._reads(caller.f_code) or id(caller) in told:
                return
            told.add(id(caller))
            frame, caller = caller, self._caller(caller)

    def _count(self, caller: FrameType, called: FrameType) -> None:
        a, b = self._module(caller.f_code), self._module(called.f_code)
        if a is None or b is None or a == b:
            return
        handed = room(a) in MAPPING_ROOMS and self._rank(room(b)) > self._rank(room(a))
        handed |= (a, caller.f_code.co_name) in MAPPERS
        with self._lock:
            (self.calls.mapped if handed else self.calls.direct)[a, b] += 1

    def _caller(self, frame: FrameType) -> FrameType | None:
        """Innermost frame of the package below this one on the stack."""
        below = frame.f_back
        while below is not None and self._module(below.f_code) is None:
            below = below.f_back
        return below

    def _module(self, code: CodeType) -> str | None:
        """Module of the package, or None."""
        if code not in self._modules:
            path, name = code.co_filename, None
            if path.startswith(self._folder) and code.co_name != "<module>":
                name = path[len(self._folder) :].removesuffix(".py").replace("/", ".")
                name = name.removesuffix(".__init__")
            self._modules[code] = name
        return self._modules[code]

    def _goes_on(self, frame: FrameType) -> bool:
        """Whether a generator was resumed, or belongs to an expression."""
        code = frame.f_code
        if not code.co_flags & inspect.CO_GENERATOR:
            return False
        if code not in self._begins:
            starts = (i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")
            self._begins[code] = next(starts)
        return code.co_name == "<genexpr>" or frame.f_lasti > self._begins[code]

    def _reads(self, code: CodeType) -> bool:
        """Whether it is a property, or a method with underscores on both sides but ``__call__``."""
        if code not in self._reading:
            *path, name = code.co_qualname.split(".")
            owner: Any = sys.modules.get(f"{self._package}.{self._module(code)}")
            for part in path:
                owner = getattr(owner, part, None)
            member = vars(owner).get(name) if isinstance(owner, type) else None
            special = name.startswith("__") and name.endswith("__") and name != "__call__"
            reading = special or isinstance(member, property | cached_property)
            self._reading[code] = reading
        return self._reading[code]


def room(module: str) -> str:
    """Folder of the package, or single module, that a module belongs to."""
    return module.split(".")[0]


def layers(pyproject: Path) -> list[list[str]]:
    """Rooms from the lowest to the highest, those of one height together."""
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    (order,) = (c["layers"] for c in contracts if "tensorlace" in c.get("containers", ()))
    return [[name.strip() for name in line.split("|")] for line in reversed(order)]


# ------------------------------------------------------------------------------------ the walks


def walks(folder: Path, listener: Listener) -> dict[str, Calls]:
    """Calls of each walk, by name; ``folder`` is for the files of a table and a model."""
    from tensorlace import TNKMRegressor, save
    from tensorlace.sources import NpySource

    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 3))
    y = np.sin(3.0 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(400)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    many = rng.uniform(-1.0, 1.0, (2800, 3))
    of_many = np.sin(3.0 * many[:, 0]) * many[:, 1] + 0.1 * rng.standard_normal(2800)

    def fixed(**how: Any) -> TNKMRegressor:
        return TNKMRegressor(rank=4, n_jobs=2, random_state=0, **how)

    def default() -> TNKMRegressor:
        return TNKMRegressor(time_budget=0.5, n_jobs=2, random_state=0)

    model, found = fixed().fit(X, y), default().fit(X, y)
    source = NpySource(folder / "X.npy", folder / "y.npy")
    steps: dict[str, list[Callable[[], Any]]] = {
        "fixed rank": [lambda: fixed().fit(X, y), lambda: fixed(solver="als").fit(X, y)],
        "default": [lambda: default().fit(X, y), lambda: default().fit(many, of_many)],
        "predict_dist": [lambda: model.predict_dist(X), lambda: found.predict_dist(X)],
        "fit_rows": [lambda: fixed(memory_budget=0).fit_rows(source)],
        "save": [lambda: save(model, folder / "m"), lambda: save(found, folder / "f")],
    }
    heard = {}
    for name, parts in steps.items():
        with listener.listening() as calls:
            for part in parts:
                part()
        heard[name] = calls
    return heard


def upward(calls: "Counter[Call]", rank: Callable[[str], int]) -> "Counter[Call]":
    """Calls from a room to one above it, or beside it in the same layer."""
    return Counter(
        {
            (a, b): n
            for (a, b), n in calls.items()
            if room(a) != room(b) and rank(room(b)) >= rank(room(a))
        }
    )


def between_rooms(calls: "Counter[Call]") -> "Counter[Call]":
    """The same calls by rooms."""
    out: Counter[Call] = Counter()
    for (a, b), n in calls.items():
        if room(a) != room(b):
            out[room(a), room(b)] += n
    return out


# ---------------------------------------------------------------------------------- the picture


@dataclass(frozen=True)
class Drawing:
    """Sizes of the picture, in pixels."""

    box: int = 150
    row: int = 17
    gap: int = 14
    lane: int = 15
    margin: int = 16


def picture(order: list[list[str]], direct: "Counter[Call]", mapped: "Counter[Call]") -> str:
    """SVG text: rooms from bottom to top, and a lane with arrows for each room that calls.

    Right of the boxes are calls that go down, left of them functions handed to a ``reduce``, which
    are called from below.
    """
    d, rooms = Drawing(), [name for layer in reversed(order) for name in layer]
    rooms = [r for r in rooms if any(r in pair for pair in direct)]
    place = {name: k for k, name in enumerate(rooms)}
    down = {r: sorted((a for a, b in direct if b == r), key=place.__getitem__) for r in rooms}
    up = {r: sorted((a for a, b in mapped if b == r), key=place.__getitem__) for r in rooms}
    callers = [r for r in rooms if any(a == r for a, _ in direct)]
    handers = [r for r in rooms if any(a == r for a, _ in mapped)]
    left = d.margin + d.lane * len(handers) + (64 if handers else 0)
    right = left + d.box
    # the lane of the room at the top is the one farthest out
    lanes = {r: right + 122 + d.lane * (len(callers) - 1 - k) for k, r in enumerate(callers)}
    inner = {r: left - 64 - d.lane * k for k, r in enumerate(handers)}
    top, bottom, y = {}, {}, float(d.margin)
    for name in rooms:
        top[name] = y
        lines = max(len(down[name]) + (name in callers), len(up[name]) + (name in handers), 2)
        y = bottom[name] = y + d.row * lines
        y += d.gap
    width, height = max(lanes.values()) + d.margin + 8, y
    parts = []
    for k, caller in enumerate(callers):
        start, x = top[caller] + 0.5 * d.row, lanes[caller]
        ends = []
        for name in rooms:
            if caller not in down[name]:
                continue
            row = down[name].index(caller) + (name in callers)
            ends.append(top[name] + (row + 0.5) * d.row)
            parts.append(
                f'<g class="c{k % 6}"><path d="M{x} {ends[-1]:g}H{right + 9}"/>'
                f'<path class="head" d="M{right + 2} {ends[-1]:g}l8 -3.5v7z"/>'
                f'<text x="{right + 14}" y="{ends[-1] - 3:g}">'
                f"{direct[caller, name]:,} by {caller}</text></g>"
            )
        parts.append(f'<path class="c{k % 6}" d="M{right} {start:g}H{x}V{max(ends):g}"/>')
    for caller in handers:
        start, x = bottom[caller] - 0.5 * d.row, inner[caller]
        ends = []
        for name in rooms:
            if caller not in up[name]:
                continue
            row = up[name].index(caller)
            ends.append(top[name] + (row + 0.5) * d.row)
            parts.append(
                f'<g class="up"><path d="M{x} {ends[-1]:g}H{left - 9}"/>'
                f'<path class="head" d="M{left - 2} {ends[-1]:g}l-8 -3.5v7z"/>'
                f'<text x="{left - 14}" y="{ends[-1] - 3:g}" text-anchor="end">'
                f"{mapped[caller, name]:,}</text></g>"
            )
        parts.append(f'<path class="up" d="M{left} {start:g}H{x}V{min(ends):g}"/>')
    for name in rooms:
        middle = (top[name] + bottom[name]) / 2
        parts.append(
            f'<rect x="{left}" y="{top[name]:g}" width="{d.box}" rx="5" '
            f'height="{bottom[name] - top[name]:g}"/>'
            f'<text class="room" x="{left + d.box / 2:g}" y="{middle + 4.5:g}">{name}</text>'
        )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" \
width="{width:g}" height="{height:g}" role="img">
<title>Calls between the rooms while a model is fitted, asked and saved</title>
<style>
svg {{ --ink: #1f2328; --box: #f3f4f6; --edge: #8c959f; font: 10px system-ui, sans-serif; }}
.c0 {{ --line: #2563a8; }} .c1 {{ --line: #a3541a; }} .c2 {{ --line: #2c7a4b; }}
.c3 {{ --line: #7a4fa3; }} .c4 {{ --line: #a8324a; }} .c5 {{ --line: #5d6b2b; }}
.up {{ --line: #6e7781; stroke-dasharray: 4 3; }}
path {{ fill: none; stroke: var(--line); stroke-width: 1.3; }}
.head {{ fill: var(--line); stroke: none; }}
text {{ fill: var(--line); }}
rect {{ fill: var(--box); stroke: var(--edge); }}
.page {{ fill: #fff; stroke: none; }}
.room {{ fill: var(--ink); font-size: 13px; font-weight: 600; text-anchor: middle; }}
</style>
<rect class="page" width="100%" height="100%" rx="8"/>
{chr(10).join(parts)}
</svg>
"""


# --------------------------------------------------------------------------------------- the table


def show(title: str, calls: "Counter[Call]") -> None:
    """Print calls, most frequent first."""
    print(f"{title}: {len(calls) or 'none'}")
    for (a, b), n in calls.most_common():
        print(f"    {n:>8,}  {a} -> {b}")


def main() -> int:
    """Walk, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", action="store_true", help="print all calls between rooms")
    parser.add_argument("--picture", type=Path, help="file for a drawing (SVG)")
    options = parser.parse_args()
    order = layers(ROOT / "pyproject.toml")
    height = {name: k for k, layer in enumerate(order) for name in layer}

    def rank(name: str) -> int:
        return height[name]

    import tensorlace  # noqa: F401

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        heard = walks(Path(folder), Listener("tensorlace", rank))
    direct = sum((calls.direct for calls in heard.values()), Counter())
    mapped = sum((calls.mapped for calls in heard.values()), Counter())
    wrong = upward(direct, rank)
    show("calls to a room above", wrong)
    show("functions handed to a reduce or a pool", mapped)
    failed = bool(wrong)
    for name, calls in heard.items():
        pairs, most = calls.pairs(), MOST_PAIRS.get(name)
        allowed = "" if most is None else f" (at most {most})"
        print(f"pairs that call each other, {name}{allowed}: {len(pairs) or 'none'}")
        for a, b in pairs:
            print(f"    {a} -> {b} {calls.direct[a, b]:,}, back {calls.direct[b, a]:,}")
        failed |= most is not None and len(pairs) > most
    if options.calls:
        show("calls between rooms", between_rooms(direct))
    if options.picture:
        text = picture(order, between_rooms(direct), between_rooms(mapped))
        options.picture.write_text(text, encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
