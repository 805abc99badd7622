"""Seconds and memory: of functions that take turns, of this process and of fresh ones."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

__all__ = ["best_of", "isolated", "memory_mb", "processor_seconds", "reset_peak", "work"]


def best_of(repeats: int, *functions: Callable[[], Any]) -> list[float]:
    """Least seconds of each function, taking turns so that a busy moment hits all alike."""
    seconds = [float("inf")] * len(functions)
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = perf_counter()
            function()
            seconds[k] = min(seconds[k], perf_counter() - start)
    return seconds


def isolated(function: str, timeout: float | None = None, **arguments: Any) -> dict[str, Any]:
    """Call ``module:function`` in a fresh process; its result with seconds and peak memory added.

    The process imports this module, which imports nothing but the standard library, and then the
    one that is named.

    Raises
    ------
    subprocess.TimeoutExpired
        It took longer than ``timeout`` seconds.
    RuntimeError
        It failed; the last line of what it complained.
    """
    started = perf_counter()
    code = f"from {__name__} import work; work()"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        input=json.dumps({"function": function, "arguments": arguments}),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise RuntimeError(said[-1] if said else f"ended with code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return {**found, "process_s": perf_counter() - started}


def work() -> None:
    """The other end of `isolated`."""
    task = json.loads(sys.stdin.read())
    module, function = task["function"].split(":")
    found = getattr(import_module(module), function)(**task["arguments"])
    print(json.dumps({**found, "peak_mb": memory_mb("VmHWM")}))


def memory_mb(field: str = "VmRSS") -> float | None:
    """Megabytes of this process: resident now (VmRSS) or at most (VmHWM); None if unknown here."""
    # getrusage's ru_maxrss would also count the parent that this process was forked from
    try:
        lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    except OSError:
        return None
    found = (line.split()[1] for line in lines if line.startswith(field + ":"))
    number = next(found, None)
    return None if number is None else float(number) * 1024 / 1e6


def reset_peak() -> float | None:
    """Forget the most memory this process ever had, where the system can; what it has now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return memory_mb("VmRSS")


def processor_seconds() -> float:
    """Seconds of processors so far: of this process, of those that it has started, of theirs.

    Workers that are still there count where the system has ``/proc``, those that have ended
    everywhere.
    """
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used) + sum(map(_of_tree, _children(os.getpid())))


def _children(pid: int) -> list[int]:
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has just ended
        return []
    return [int(word) for text in lists for word in text.split()]


def _of_tree(pid: int) -> float:
    """User and system time of a process and of its children, ended or not."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    ticks = sum(map(int, words[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_of_tree, _children(pid)))
