"""One self-contained HTML page about a fitted model, with a live what-if panel."""

from tensorlace.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
