"""One file per command.

Imports from: predictive, sources, metrics, columns, machines, estimators, model_file, export,
report, serve.
"""

__all__: list[str] = []
