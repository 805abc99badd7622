"""Where a result comes from: date, versions, machine."""

import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tensorlace

__all__ = ["provenance"]


def provenance(packages: Iterable[str]) -> dict[str, Any]:
    """Date, versions of Python, tensorlace and those of the packages that are here, machine."""
    versions = {"python": platform.python_version(), "tensorlace": tensorlace.__version__}
    for package in packages:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or sys.platform
