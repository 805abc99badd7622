"""The compared systems on the sets of the paper: ``python -m benchmarks systems``.

Test share 0.1, random_state = split for the rows and for the system, scores for y standardised by
the training rows. Every finished cell is a line of results/systems/<system>.jsonl; a run that was
stopped goes on where it was.
"""

import argparse
import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.record import ROOT
from tensorlace import metrics
from tensorlace.baselines import SYSTEMS
from tensorlace.datasets import load_uci

SETS = ("yacht", "boston", "energy", "concrete", "wine", "kin8nm", "power", "naval", "protein")
PACKAGES = ("tensorlace", "numpy", "scipy", "scikit-learn", "jax", "optax")


def cell(system: str, name: str, split: int) -> dict[str, Any]:
    X, y, _ = load_uci(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.1, random_state=split)
    location, scale = y.mean(), y.std()
    wall, cpu = perf_counter(), process_time()
    model = SYSTEMS[system](random_state=split).fit(X, y)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    dist = model.predict_dist(X_test).affine(1 / scale, -location / scale)
    scores = metrics.summary((y_test - location) / scale, dist)
    return {
        "set": name,
        "split": split,
        "n_train": len(y),
        **{k: float(f"{v:.5g}") for k, v in scores.items()},
        "seconds": round(wall, 1),
        "cpu_seconds": round(cpu, 1),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
    }


def finished(directory: Path, system: str) -> list[dict[str, Any]]:
    path = directory / f"{system.replace(' ', '-')}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(directory: Path) -> str:
    """Mean NLL over the finished splits, their number, and CPU seconds of a fit."""
    lines = [f"| system | {' | '.join(SETS)} |", "|---" * (len(SETS) + 1) + "|"]
    for system in SYSTEMS:
        cells = []
        for name in SETS:
            rows = [row for row in finished(directory, system) if row["set"] == name]
            nll, cpu = (np.mean([row[k] for row in rows] or [0]) for k in ("nll", "cpu_seconds"))
            cells.append(f"{nll:.2f} ({len(rows)}; {cpu:.0f} s)" if rows else "–")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks systems")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options, _ = parser.parse_known_args()
    directory = Path(os.environ.get("SYSTEMS_RESULTS") or ROOT / "results" / "systems")
    directory.mkdir(parents=True, exist_ok=True)
    for split in range(1, options.splits + 1):
        for name in options.sets.split(","):
            for system in options.systems.split(","):
                done = {(row["set"], row["split"]) for row in finished(directory, system)}
                if (name, split) in done:
                    continue
                row = cell(system, name, split)
                with (directory / f"{system.replace(' ', '-')}.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    f"{system:9s} {name:9s} split {split:2d}  nll {row['nll']:7.3f}  "
                    f"rmse {row['rmse']:.3f}  {row['cpu_seconds']:6.1f} s of CPU",
                    flush=True,
                )
    print(table(directory))


if __name__ == "__main__":
    main()
