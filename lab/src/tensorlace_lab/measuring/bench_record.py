"""Timing, fresh processes, and the small JSON files that results are kept in."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(os.environ.get("BENCH_RESULTS", ROOT / "results" / "bench"))

Row = dict[str, Any]


def best_of(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """Least seconds of each function, taking turns so that a busy moment hits all alike."""
    seconds = [float("inf")] * len(functions)
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = perf_counter()
            function()
            seconds[k] = min(seconds[k], perf_counter() - start)
    return seconds


def rounded(row: Row) -> Row:
    """Four digits of every number."""
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}


def save(
    name: str,
    seed: int,
    rows: list[Row],
    packages: tuple[str, ...],
    arguments: tuple[str, ...] = (),
) -> Path:
    """Write rows of results with everything needed to repeat them."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    record = {
        "command": " ".join(("python -m benchmarks", name, *arguments)),
        "seed": seed,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "versions": versions(packages),
        "rows": rows,
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"saved {path.relative_to(Path.cwd())}" if path.is_relative_to(Path.cwd()) else path)
    return path


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of tensorlace and of the packages, as installed."""
    from tensorlace import __version__

    return {"tensorlace": __version__, **{p: version(p) for p in packages}}


def versions_of(names: list[str]) -> dict[str, str]:
    """`versions`, for `isolated`."""
    return versions(tuple(names))


class Finished:
    """Rows of an interrupted benchmark, kept if they were made with the same versions.

    Parameters
    ----------
    name : str
    keys : tuple of str
        What tells one row from another.
    """

    def __init__(
        self,
        name: str,
        seed: int,
        keys: tuple[str, ...],
        packages: tuple[str, ...],
        fresh: bool,
        arguments: tuple[str, ...] = (),
    ) -> None:
        self._save = (name, seed)
        self._keys, self._packages, self._arguments = keys, packages, arguments
        self.rows: list[Row] = []
        path = RESULTS / f"{name}.json"
        if path.exists() and not fresh:
            old = json.loads(path.read_text())
            if old["versions"] == versions(packages) and old["machine"] == _processor():
                self.rows = old["rows"]

    def __contains__(self, row: Row) -> bool:
        return any(all(row[k] == old.get(k) for k in self._keys) for old in self.rows)

    def add(self, row: Row) -> None:
        """Keep a row, on disk too; one of the same keys gives way."""
        keep = [old for old in self.rows if any(old.get(k) != row[k] for k in self._keys)]
        self.rows = [*keep, rounded(row)]
        name, seed = self._save
        save(name, seed, self.rows, self._packages, self._arguments)


def isolated(function: str, timeout: float | None = None, **arguments: Any) -> Row:
    """Call ``module:function`` in a fresh process; its result with seconds and peak memory added.

    Raises `subprocess.TimeoutExpired`, or `RuntimeError` with the last line of what it complained.
    """
    import tensorlace

    paths = [str(ROOT), str(Path(tensorlace.__file__).parent.parent)]
    started = perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "from benchmarks.record import work; work()"],
        input=json.dumps({"function": function, "arguments": arguments}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise RuntimeError(said[-1] if said else f"ended with code {done.returncode}")
    row: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return {**row, "process_s": perf_counter() - started}


def work() -> None:
    """The other end of `isolated`."""
    task = json.loads(sys.stdin.read())
    module, function = task["function"].split(":")
    row = getattr(import_module(module), function)(**task["arguments"])
    print(json.dumps({**row, "peak_mb": memory_mb("VmHWM")}))


def memory_mb(field: str = "VmRSS") -> float:
    """Memory of this process in MB: resident now (VmRSS) or at most so far (VmHWM)."""
    # getrusage's ru_maxrss would also count the parent that this process was forked from
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return float(line.split()[1]) * 1024 / 1e6
    raise OSError(f"the system does not tell {field}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or sys.platform
