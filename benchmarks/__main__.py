"""Run all benchmarks, or those named: ``python -m benchmarks [gram ...]``."""

import sys

from benchmarks import gram

ALL = {"gram": gram.main}

for name in sys.argv[1:] or ALL:
    ALL[name]()
