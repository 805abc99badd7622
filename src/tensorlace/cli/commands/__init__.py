"""One file per command.

Imports from: columns, machines, estimators, model_file, export, report, serve.
"""

__all__: list[str] = []
