"""The one command of the laboratory: ``python -m tensorlace_lab NAME ...``."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tensorlace.errors import TensorlaceError
from tensorlace_lab.experiments import DEFAULT, NAMES, PAPER, SPEED, experiment_named
from tensorlace_lab.measuring.cells import Records
from tensorlace_lab.measuring.runner import Options, run

__all__ = ["main"]

PAGES = ("page", "pages")
"""The page of the paper's experiments, and all pages of the documentation."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run experiments by name; 0 if every cell came out."""
    arguments = _parser().parse_args(argv)
    results, failed = arguments.results or _results(arguments.quick), 0
    try:
        for name in arguments.names:
            failed += (
                _written(name, results) if name in PAGES else _measured(name, results, arguments)
            )
    except TensorlaceError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished cells are kept", file=sys.stderr)
        return 130
    return 1 if failed else 0


def _results(quick: bool) -> Path:
    """Where results are, if it is not said: those of the repository, but never for a taste."""
    if quick:
        return Path("out", "results")
    return Path("lab", "results") if Path("lab").is_dir() else Path("results")


def _measured(name: str, results: Path, arguments: argparse.Namespace) -> int:
    """Measure what is missing, print and draw what is there; the number of cells that failed."""
    experiment, records = experiment_named(name), Records(results / name)
    options = Options(
        protocols=arguments.protocol,
        systems=arguments.systems,
        sets=arguments.sets,
        splits=arguments.splits,
        quick=arguments.quick,
    )
    failed = run(
        experiment,
        experiment.asked(options),
        records,
        data=arguments.data,
        jobs=arguments.jobs,
        fresh=arguments.fresh,
    )
    if len(records):
        print(experiment.markdown(list(records)))
        for path in experiment.figures(list(records), results / name):
            print(f"wrote {path}")
    return failed


def _written(name: str, results: Path) -> int:
    """Write pages; nothing can fail."""
    from tensorlace_lab.pages import documents, paper

    if name == "page":
        files = paper.write(results)
    else:
        files = documents.write(results, Path("docs"), Path("README.md"))
    for path in files:
        print(f"wrote {path}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorlace_lab",
        description="Measure what is missing. Finished cells are kept and not measured again; a "
        "run that was stopped goes on where it was.",
        epilog=f"Of the paper: {', '.join(PAPER)}. How the default does: {', '.join(DEFAULT)}. "
        f"Seconds and memory: {', '.join(SPEED)}. page: the paper's experiments as one file of "
        "HTML; pages: docs/ and README.md of the repository.",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", choices=(*NAMES, *PAGES), help="below")
    parser.add_argument(
        "--protocol",
        type=_words,
        help="published: the authors' procedure as their code has it; corrected: the paper's "
        "method done right; default: TNKMRegressor(); several with commas",
    )
    parser.add_argument("--systems", type=_words, help="names with commas, or all")
    parser.add_argument("--sets", type=_words, help="names with commas")
    parser.add_argument("--splits", type=_splits, help="5 for 1 to 5, or 2,3 or 4-6")
    parser.add_argument("--jobs", type=_whole, help="processes; 0: in this one")
    parser.add_argument("--data", help="directory of the sets; default TENSORLACE_DATA")
    parser.add_argument("--results", type=Path, help="directory to write to")
    parser.add_argument("--quick", action="store_true", help="a taste in minutes")
    parser.add_argument("--fresh", action="store_true", help="measure finished cells again")
    return parser


def _whole(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def _words(text: str) -> tuple[str, ...]:
    """Words with commas; one that a blank follows belongs to a name.

    >>> _words("wine,yacht"), _words("GPJax, exact")
    (('wine', 'yacht'), ('GPJax, exact',))
    """
    found = tuple(word for word in re.split(",(?! )", text) if word)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return found


def _splits(text: str) -> tuple[int, ...]:
    """Numbers of splits from ``"5"`` (1 to 5), ``"2,3"`` or ``"4-6"``.

    >>> _splits("3"), _splits("2,7"), _splits("4-6"), _splits("4-4")
    ((1, 2, 3), (2, 7), (4, 5, 6), (4,))
    """
    try:
        if "," in text:
            found = [int(word) for word in text.split(",")]
        else:
            first, _, last = text.rpartition("-")
            found = list(range(int(first or 1), int(last) + 1))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not 5, 2,3 or 4-6") from error
    if not found or min(found) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} names no split")
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main())
