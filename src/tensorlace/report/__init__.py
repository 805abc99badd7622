"""One self-contained HTML page about a fitted model, with a live what-if panel.

Imports from: linalg, predictive, kinds, portable, sources, metrics, columns, machines, explain,
estimators, compact, displays.
"""

from tensorlace.report.page import write_report

__all__ = ["write_report"]
