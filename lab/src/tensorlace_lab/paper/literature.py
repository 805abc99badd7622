"""Figures of Saiapin & Batselier (2026) as printed: never ours, always labelled as published.

Its comparison of systems mixes units. The first five columns come from other papers and are in
original units of y, the last four in units of the standardised target:
``NLL_standardised = NLL_original - log(std(y))``.
"""

import math
from collections.abc import Mapping

__all__ = [
    "COLUMNS",
    "CUBIC",
    "HESSIANS",
    "NLL",
    "ORIGINAL_UNITS",
    "OURS",
    "SCORES",
    "STD",
    "standardised_nll",
]

OURS = "LA-TNKM"

STD: Mapping[str, float] = {
    "boston": 9.18801,
    "concrete": 16.69763,
    "energy": 10.08362,
    "kin8nm": 0.26359,
    "naval": 0.014720,
    "power": 17.06610,
    "protein": 6.11824,
    "wine": 0.80732,
    "yacht": 15.13586,
}
"""Deviation of y over all rows of a set."""

ORIGINAL_UNITS = ("GWI-DNN", "FVI", "BBB", "alpha=0.5", "Exact GP")
COLUMNS = (*ORIGINAL_UNITS, "LA-BNN", "MF-BTN", "SP-BTN", OURS)
_N = None

NLL: Mapping[str, Mapping[str, float | None]] = {
    name: dict(zip(COLUMNS, row, strict=True))
    for name, row in {
        "boston": (2.27, 2.33, 2.76, 2.45, 2.46, 2.10, 1.45, 1.19, 0.95),
        "concrete": (2.64, 2.88, 3.28, 3.06, 3.05, 1.56, 1.41, 0.74, 0.82),
        "energy": (0.91, 0.58, 2.17, 0.95, 0.54, 1.32, 1.41, 0.62, -1.40),
        "kin8nm": (-1.2, -1.15, -0.81, -0.92, _N, 1.22, 1.42, 0.89, 0.48),
        "naval": (-6.76, -7.21, -2.80, -2.97, _N, _N, 1.42, 1.37, -1.16),
        "power": (2.74, 2.69, 2.83, 2.81, _N, 0.88, 1.42, 0.57, -0.01),
        "protein": (2.87, 2.85, 3.00, 2.90, _N, 1.00, 1.42, 1.36, 1.06),
        "wine": (0.76, 0.97, 1.01, 1.01, 0.26, 2.03, 1.35, 1.26, 1.24),
        "yacht": (0.29, 0.59, 1.11, 0.79, 0.10, 1.34, 1.38, 0.58, -0.52),
    }.items()
}
"""NLL as printed, in two units."""

SCORES: Mapping[str, Mapping[str, float]] = {
    name: dict(zip(("rmse", "nll", "rce", "ecp95", "wcpi95"), row, strict=True))
    for name, row in {
        "boston": (0.63, 0.95, 0.05, 0.90, 2.07),
        "concrete": (0.55, 0.82, 0.03, 0.95, 2.22),
        "energy": (0.05, -1.40, 0.20, 0.99, 0.32),
        "kin8nm": (0.39, 0.48, 0.02, 0.95, 1.55),
        "naval": (0.08, -1.16, 0.23, 0.98, 0.43),
        "power": (0.24, -0.01, 0.03, 0.96, 0.97),
        "protein": (0.70, 1.06, 0.04, 0.94, 2.74),
        "wine": (0.84, 1.24, 0.04, 0.95, 3.38),
        "yacht": (0.13, -0.52, 0.13, 0.97, 0.70),
    }.items()
}
"""Scores of LA-TNKM, standardised target."""

HESSIANS: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    name: dict(zip(("ggn", "block", "last"), rows, strict=True))
    for name, rows in {
        "boston": ((0.70, 0.97, 0.09), (0.70, 0.99, 0.11), (0.63, 0.95, 0.05)),
        "concrete": ((0.63, 0.98, 0.06), (0.64, 1.01, 0.07), (0.55, 0.82, 0.03)),
        "energy": ((0.44, 0.62, 0.06), (0.44, 0.64, 0.08), (0.05, -1.40, 0.20)),
        "kin8nm": ((0.58, 0.88, 0.04), (0.56, 0.86, 0.05), (0.39, 0.48, 0.02)),
        "naval": ((0.01, -1.96, 0.44), (0.11, -0.61, 0.26), (0.08, -1.16, 0.23)),
        "power": ((0.31, 0.24, 0.03), (0.31, 0.24, 0.03), (0.24, -0.01, 0.03)),
        "protein": ((0.72, 1.08, 0.05), (0.72, 1.09, 0.06), (0.70, 1.06, 0.04)),
        "wine": ((0.86, 1.28, 0.08), (0.86, 1.29, 0.08), (0.84, 1.24, 0.04)),
        "yacht": ((0.24, 0.02, 0.20), (0.13, 0.07, 0.35), (0.13, -0.52, 0.13)),
    }.items()
}
"""RMSE, NLL and RCE of LA-TNKM by Hessian."""

CUBIC: Mapping[str, Mapping[str, float]] = {
    name: dict(zip(("rmse", "nll", "ecp95", "wcpi95", "rce"), row, strict=True))
    for name, row in {
        "LA-BNN": (16.727, 4.226, 0.750, 17.447, 0.112),
        "MF-BTN": (4.883, 3.730, 1.000, 99.559, 0.289),
        "SP-BTN": (6.202, 3.257, 0.970, 40.168, 0.097),
        "GP": (3.231, 2.610, 0.940, 13.496, 0.031),
        "LA-TNKM": (4.097, 2.802, 0.960, 17.202, 0.032),
    }.items()
}
"""The toy, one data set, units of y."""


def standardised_nll(name: str, system: str) -> float | None:
    """Published NLL of a system on a set in units of the standardised target.

    >>> round(standardised_nll("yacht", "Exact GP"), 2), standardised_nll("yacht", "LA-TNKM")
    (-2.62, -0.52)
    """
    value = NLL[name][system]
    if value is None:
        return None
    return value - math.log(STD[name]) if system in ORIGINAL_UNITS else value
