"""One self-contained HTML page about a fitted model, with a live what-if panel.

Imports from: portable, linalg, predictive, kinds, sources, metrics, columns, machines, explain,
estimators, compact, displays.
"""

from tensorlace.report.page import write_report

__all__ = ["write_report"]
