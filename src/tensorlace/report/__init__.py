"""One self-contained HTML page about a fitted model, with a live what-if panel."""
