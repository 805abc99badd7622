"""One self-contained HTML page about a fitted model, with a live what-if panel."""

from tensorlace.report.page import write_report

__all__ = ["write_report"]
