"""``python -m tensorlace.cli``."""

from tensorlace.cli import main

if __name__ == "__main__":
    main()
