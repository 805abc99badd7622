"""``python -m tensorlace.experiments``."""

import sys

from tensorlace_lab.paper.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
