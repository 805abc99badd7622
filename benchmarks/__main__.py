"""Run all benchmarks, or those named: ``python -m benchmarks [gram ...]``."""

import sys

from benchmarks import gram, sweep

ALL = {"gram": gram.main, "sweep": sweep.main}

for name in sys.argv[1:] or ALL:
    ALL[name]()
