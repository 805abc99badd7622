"""``tensorlace inspect``: what is in a model file."""

from collections.abc import Iterator
from typing import Any

from tensorlace.cli.options import Json, Model
from tensorlace.cli.output import count, number, print_json, say, table
from tensorlace.columns.encoding import LevelCodes
from tensorlace.machines.ensemble import Ensemble
from tensorlace.machines.fitted_model import holder
from tensorlace.model_file.files import describe, load

__all__ = ["inspect"]


def inspect(model: Model, json: Json = False) -> None:
    """Show what a model file holds.

    Example:

    tensorlace inspect houses.tlace
    """
    fitted, facts = holder(load(model)).fitted_model(), describe(model)
    record = fitted.record
    about, notes = facts["about"], facts["notes"]
    columns: list[dict[str, Any]] = [
        {"name": name, "kind": repr(kind), "levels": _levels(code)}
        for (name, kind), code in zip(fitted.kinds.items(), fitted.encoding.codes, strict=True)
    ]
    members = list(_members(fitted.ensemble))
    if json:
        print_json(
            {
                "model": str(model),
                "class": facts["class"],
                "format": facts["version"],
                "tensorlace": about["tensorlace"],
                "bytes": facts["bytes"],
                "rows": record.n_rows,
                "log_evidence": record.log_evidence,
                "noise_std": record.noise_precision**-0.5,
                "noise": about["noise"],
                "rows_in_file": about["n_background"],
                "calibrated": about["calibrated"],
                "held_out": about["held_out"],
                "held_back": None if record.held_back is None else record.held_back.plain(),
                "columns": columns,
                "members": members,
                "notes": notes,
            }
        )
        return
    size = number(facts["bytes"] / 1024)
    say(
        [
            f"{facts['class']}, {size} KiB, format {facts['version']}, "
            f"by tensorlace {about['tensorlace']}",
            f"fitted to {count(record.n_rows, 'row')} and {count(len(columns), 'column')}",
            f"log evidence {number(record.log_evidence)}, noise about "
            f"±{number(record.noise_precision**-0.5)}, {about['noise'].replace('_', ' ')}",
            *_seen(about),
            *([] if record.held_back is None else [str(record.held_back)]),
            *(f"{key}: {value}" for key, value in notes.items()),
            "",
        ]
    )
    rows = [
        (c["name"], c["kind"], "" if c["levels"] is None else str(c["levels"])) for c in columns
    ]
    table(("column", "kind", "levels"), rows)
    say([""])
    cells = (
        (
            *(str(k + 1), f"{m['weight']:.3f}", str(m["rank"]), str(m["weights"]), m["posterior"]),
            *("yes" if m[key] else "no" for key in ("additive", "rotated")),
            "" if m["decrement"] is None else f"{m['decrement']:.2g}",
        )
        for k, m in enumerate(members)
    )
    head = ("member", "share", "rank", "weights", "posterior", "additive", "rotated", "decrement")
    table(head, cells)


def _seen(about: dict[str, Any]) -> Iterator[str]:
    """Rows held out or left out in the search, and rows that are in the file."""
    held_out = about["held_out"]
    if held_out is not None:
        where = held_out["levels"].index(0.95)
        yield (
            f"{count(round(held_out['n_rows']), 'row')} held out: log score "
            f"{number(held_out['log_score'])}, {held_out['coverage'][where]:.1%} in 95% intervals"
        )
    kept = about["n_background"]
    yield f"{count(kept, 'training row')} in the file" if kept else "no training rows in the file"
    if about["calibrated"]:
        yield "intervals calibrated on rows of their own"


def _levels(code: Any) -> int | None:
    return len(code.numbers) if isinstance(code, LevelCodes) else None


def _members(ensemble: Ensemble) -> Iterator[dict[str, Any]]:
    for machine, share in zip(ensemble.machines, ensemble.weights, strict=True):
        network, ended = machine.fit.network, machine.fit.convergence
        yield {
            "weight": float(share),
            "rank": network.rank,
            "n_basis": list(machine.columns.sizes),
            "weights": network.n_weights,
            "posterior": type(machine.fit.posterior).__name__,
            "additive": network.additive,
            "rotated": machine.columns.rotation is not None,
            "steps": machine.fit.n_steps,
            "gradient": machine.fit.gradient,
            "decrement": None if ended is None else ended.decrement,
            "precision_change": None if ended is None else ended.precision_change,
        }
