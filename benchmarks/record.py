"""Timing and the small JSON files that results are kept in."""

import json
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

RESULTS = Path(__file__).parent.parent / "results" / "bench"


def best_of(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """Least seconds of each function, taking turns so that a busy moment hits all alike."""
    seconds = [float("inf")] * len(functions)
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = perf_counter()
            function()
            seconds[k] = min(seconds[k], perf_counter() - start)
    return seconds


def save(name: str, seed: int, rows: list[dict[str, Any]], packages: tuple[str, ...]) -> Path:
    """Write rows of results with everything needed to repeat them."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {
        "command": f"python -m benchmarks {name}",
        "seed": seed,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": _processor(),
        "versions": {p: version(p) for p in ("tensorlace", *packages)},
        "rows": rows,
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"saved {path.relative_to(Path.cwd())}" if path.is_relative_to(Path.cwd()) else path)
    return path


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or sys.platform
