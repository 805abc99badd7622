"""Summary of a fitted model as text."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import final

import numpy as np

from tensorlace._types import Array
from tensorlace.explain.relevance import relevance_of
from tensorlace.machines.fitted import Convergence
from tensorlace.machines.fitted_model import FittedModel
from tensorlace.machines.machine import KernelMachine

__all__ = ["Overview", "overview"]

WIDTH = 80
_MOST_COLUMNS, _MOST_MEMBERS = 20, 12
_NAME, _BAR = 24, 36
_MOST_DISTRUSTED = 8


@final
@dataclass(frozen=True)
class Overview:
    """Summary of a fitted model, to be printed.

    Attributes
    ----------
    title : str
    facts : tuple of (str, str)
        Name of a finding, and its value in words.
    members : tuple of tuple of str
        A table with its head first, if there are several members.
    endings : tuple of tuple of str
        The same of how their fits ended.
    relevance : tuple of (str, float)
        Columns and their shares, largest first.
    remarks : tuple of str
        Warnings about the use of the model.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    members: tuple[tuple[str, ...], ...]
    relevance: tuple[tuple[str, float], ...]
    remarks: tuple[str, ...]
    endings: tuple[tuple[str, ...], ...] = ()

    def __str__(self) -> str:
        lines = [self.title, "=" * min(len(self.title), WIDTH)]
        for name, value in self.facts:
            first, *more = wrap(value, WIDTH - 26) or [""]
            lines += [f"{name:<24}  {first}", *(" " * 26 + line for line in more)]
        if self.members:
            lines += ["", "Members of the mixture", *_table(self.members)]
        if self.endings:
            lines += ["", "How their fits ended", *_table(self.endings)]
        lines += ["", "Relevance: the variance of y shared out among columns; interactions, and"]
        lines += ["what correlated columns have in common, are split between them"]
        lines += _bars(self.relevance)
        for k, remark in enumerate(self.remarks):
            head = ["", "Remarks"] if k == 0 else []
            lines += [*head, *wrap(remark, WIDTH, initial_indent="- ", subsequent_indent="  ")]
        return "\n".join(line.rstrip()[:WIDTH] for line in lines)

    def _repr_html_(self) -> str:
        """The same text in a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


def overview(model: FittedModel) -> Overview:
    """Collect what `Overview` tells of a fitted model."""
    machines, record = model.machines, model.record
    shares = model.shares()
    scale = machines[0].target.scale
    noise = float(record.noise_precision) ** -0.5
    unit, share = model.scale.unit, (noise / scale) ** 2
    determined = float(np.average([m.fit.determined for m in machines], weights=shares))
    sizes = [m.fit.network.n_weights for m in machines]
    pruned = sum(m.n_pruned for m in machines)
    count = f"{sum(sizes):,} weights" + (f", {pruned:,} more were switched off" if pruned else "")
    facts = [
        ("rows", f"{record.n_rows:,}"),
        ("log evidence", f"{record.log_evidence:.1f}"),
        ("noise std", f"{noise:.4g} in units of {unit} ({share:.1%} of its variance)"),
        ("noise", model.noise.description),
        *_scale(model),
        ("effective parameters", f"{determined:.1f} of {np.average(sizes, weights=shares):.0f}"),
        ("size", count),
        ("steps", f"{record.n_iter}"),
        *_ending(machines),
        *_distrusted(model),
        *_unseen(model),
    ]
    if len(machines) == 1:
        facts = [*_structure(model, machines[0]), *facts]
    tried = record.search_results
    if tried is not None:
        facts.insert(0, ("chosen from", _plural(len(tried), "candidate")))
    names, relevance = model.names, relevance_of(model)
    order = np.argsort(-relevance, kind="stable")
    return Overview(
        f"{record.estimator}: {_plural(len(machines), 'member')}, {_plural(len(names), 'column')}",
        tuple(facts),
        _members(machines, shares) if len(machines) > 1 else (),
        tuple((names[d], float(relevance[d])) for d in order),
        tuple(_remarks(model)),
        _endings(machines, shares) if len(machines) > 1 else (),
    )


def _scale(model: FittedModel) -> Iterable[tuple[str, str]]:
    """Scale of the target, if it has one of its own."""
    if not model.scale.trivial:
        yield "target", model.scale.description


def _distrusted(model: FittedModel) -> Iterable[tuple[str, str]]:
    """Rows that a fit with tails has left aside, by their numbers."""
    found = model.record.distrusted
    if found is None or not found.n_rows:
        return
    numbers = ", ".join(str(row) for row in found.row[:_MOST_DISTRUSTED])
    more = ", ..." if found.n_rows > _MOST_DISTRUSTED else ""
    what = "row is" if found.n_rows == 1 else "rows are"
    yield (
        "distrusted",
        f"{found.n_rows:,} {what} distrusted: {numbers}{more}"
        if numbers
        else (f"{found.n_rows:,} {what} distrusted"),
    )


def _unseen(model: FittedModel) -> Iterable[tuple[str, str]]:
    """How intervals did on rows held out, and whether they were calibrated since."""
    seen = model.record.check
    if seen is not None:
        held = dict(zip(seen.levels, seen.coverage, strict=True))[0.95]
        rows = f"{seen.n_rows:,.0f} rows held or left out"
        yield "95 % intervals", f"held {held:.1%} of {rows}"
    if model.calibration is not None:
        yield "calibrated", f"on {model.calibration.n_rows:,.0f} rows of their own"


def _structure(model: FittedModel, machine: KernelMachine) -> list[tuple[str, str]]:
    columns, arguments = machine.columns, model.record.arguments
    rank, asked = machine.fit.network.rank, arguments.get("rank")
    fewer = f", of {asked} asked for" if isinstance(asked, int) and asked != rank else ""
    groups = arguments.get("prior_groups", "auto")
    if groups == "auto":
        tried = model.record.search_results
        if tried is not None:  # those with weight come first
            chosen = tried[0] if isinstance(tried, list) else tried.iloc[0]
            groups = chosen["prior_groups"]
    groups = "one for all weights" if groups in ("all", "auto") else groups
    return [
        ("rank", f"{rank}{fewer}"),
        ("bases", _counted(c.basis.described.name for c in columns.columns)),
        ("functions per column", _range(columns.sizes)),
        ("warps", _counted(type(c.warp).__name__.lower() for c in columns.columns)),
        ("prior precisions", groups),
        ("additive part", _yes(_additive(machine))),
        ("rotation", _yes(columns.rotation is not None)),
    ]


def _members(machines: Sequence[KernelMachine], shares: Array) -> tuple[tuple[str, ...], ...]:
    head = ("share", "rank", "basis", "functions", "warp", "additive", "rotated", "evidence")
    rows: list[tuple[str, ...]] = []
    for k in np.argsort(-shares, kind="stable"):
        m = machines[k]
        warps = Counter(type(c.warp).__name__.lower() for c in m.columns.columns)
        bases = Counter(c.basis.described.name for c in m.columns.columns)
        rows.append(
            (
                f"{shares[k]:.2f}",
                f"{m.fit.network.rank}",
                bases.most_common(1)[0][0],
                _range(m.columns.sizes),
                warps.most_common(1)[0][0],
                _yes(_additive(m)),
                _yes(m.columns.rotation is not None),
                f"{m.fit.log_evidence:.1f}",
            )
        )
    return (head, *_first(rows))


def _first(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The first rows of a table, and how many more there are."""
    left = len(rows) - _MOST_MEMBERS
    return rows if left <= 0 else [*rows[:_MOST_MEMBERS], (f"+{left}", *[""] * (len(rows[0]) - 1))]


def _endings(machines: Sequence[KernelMachine], shares: Array) -> tuple[tuple[str, ...], ...]:
    """How the members' fits ended; none if a file does not say."""
    head = ("share", "steps", "gradient", "decrement", "precisions")
    rows: list[tuple[str, ...]] = []
    for k in np.argsort(-shares, kind="stable"):
        fit = machines[k].fit
        found = fit.convergence
        if found is None:
            return ()
        rows.append(
            (
                *(f"{shares[k]:.2f}", f"{fit.n_steps}", f"{fit.gradient:.1e}"),
                *(f"{found.decrement:.2g}", _precisions(found)),
            )
        )
    return (head, *_first(rows))


def _ending(machines: Sequence[KernelMachine]) -> Iterable[tuple[str, str]]:
    """How the fit of a single machine ended."""
    found = machines[0].fit.convergence
    if len(machines) == 1 and found is not None:
        why = "nothing left to gain" if found.arrived else "steps were spent"
        yield (
            "the fit ended",
            f"as {why}; gradient {machines[0].fit.gradient:.1e}, a further step moves predictions "
            f"by at most {found.decrement:.2g} of their own std; precisions {_precisions(found)}",
        )


def _precisions(found: Convergence) -> str:
    """Whether precisions were still changing, and how much in the last update."""
    if found.settled:
        return "settled"
    if np.isinf(found.precision_change):
        return "not known"
    of = f"{found.n_unsettled} of {found.n_precisions}"
    change = found.precision_change
    much = f"{change:.2g}" if change < 0.01 else f"{change:.0%}" if change < 10.0 else "> 1000%"
    return f"{of} by {much}"


def _remarks(model: FittedModel) -> Iterable[str]:
    machines, record = model.machines, model.record
    fits = [m.fit for m in machines]
    worst, tol = max(f.gradient for f in fits), record.arguments.get("tol", np.inf)
    if worst > tol and record.search_results is None:
        yield (
            f"The MAP was not reached: relative gradient {worst:.1e}, tol={tol:g}. Raise "
            f"max_sweeps or tol."
        )
    if min(f.rcond for f in fits) < np.finfo(float).eps:
        yield "Normal equations are singular to working precision: give fewer basis functions."
    if record.n_dropped:
        yield f"{record.n_dropped} posterior directions were cut off and count as certain."
    noise = float(record.noise_precision) ** -0.5 / machines[0].target.scale
    if noise > 0.99 and machines[0].target.scale > 0:
        yield "The columns say next to nothing about y: the model predicts its average."
    growing = {
        c.basis.described.name for m in machines for c in m.columns.columns if not c.basis.bounded
    }
    if growing:
        yield (
            f"Beyond the range of the training rows predictions follow polynomials "
            f"({', '.join(sorted(growing))}): see novelty(X)."
        )
    if any(m.columns.rotation is not None for m in machines):
        yield (
            "Columns were rotated: relevance and effects are those of the columns as they are in "
            "the table."
        )
    if record.held_back is not None:
        yield f"{record.held_back}."
    if record.check is not None and str(record.check) and record.check.contradicted:
        yield str(record.check)


def _bars(shares: Sequence[tuple[str, float]]) -> list[str]:
    """One line per column, the bar relative to the largest share."""
    top = max([share for _, share in shares], default=0.0)
    lines = []
    for name, share in shares[:_MOST_COLUMNS]:
        bar = "#" * round(_BAR * share / top) if top > 1e-4 else ""
        short = name if len(name) <= _NAME else name[: _NAME - 3] + "..."
        lines.append(f"  {short:<{_NAME}} {share:>7.1%}  {bar}")
    rest = shares[_MOST_COLUMNS:]
    if rest:
        lines.append(f"  and {_plural(len(rest), 'column')} below {max(s for _, s in rest):.1%}")
    return lines


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True))
        for row in rows
    ]


def _counted(names: Iterable[str]) -> str:
    counts = Counter(names).most_common()
    if len(counts) == 1:
        return counts[0][0]
    return ", ".join(f"{name} ({n})" for name, n in counts)


def _range(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low}" if low == high else f"{low}-{high}"


def _additive(machine: KernelMachine) -> bool:
    return machine.fit.network.additive


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
