"""The command line: ``tensorlace fit``, ``predict``, ``evaluate``, ``compare`` and others.

Imports from: predictive, kinds, sources, metrics, columns, rows, machines, estimators,
model_file, export, report, serve.
"""

from tensorlace.cli.start import main

__all__ = ["main"]
