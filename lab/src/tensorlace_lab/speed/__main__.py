"""Run all benchmarks, or those named: ``python -m benchmarks [gram ...] [--fresh ...]``."""

import sys
from importlib import import_module

ALL = ["gram", "sweep", "passes", "predict", "first_fit", "scaling", "peers", "airline", "report"]
"""Modules of this folder, each with a ``main`` that may read its options from the command line."""

NAMED = ["quality", "tables", "simple"]
"""Those that run only if they are named."""

known = {*ALL, *NAMED}
names = [name for name in sys.argv[1:] if name in known]
options = [word for word in sys.argv[1:] if word not in known]
if options and not options[0].startswith("-"):
    raise SystemExit(f"no benchmark {options[0]!r}: choose from {', '.join((*ALL, *NAMED))}")
for name in names or ALL:
    sys.argv[1:] = options
    import_module(f"benchmarks.{name}").main()
