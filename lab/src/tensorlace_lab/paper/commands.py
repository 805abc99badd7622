"""The command line of the experiments."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tensorlace.errors import TensorlaceError
from tensorlace_lab.measuring.data import SETS
from tensorlace_lab.measuring.records import Records
from tensorlace_lab.measuring.runner import Experiment, Options, run
from tensorlace_lab.measuring.systems import PROTOCOLS

__all__ = ["NAMES", "experiment_named", "main"]

NAMES = (
    *("cubic", "linearization", "hessians", "hessian-table", "complexity", "uci", "equal-size"),
    "page",
)
"""Experiments, and the page of what they found."""


def experiment_named(name: str) -> Experiment:
    """Look up an experiment."""
    module = import_module(f"tensorlace.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run experiments by name; 0 if every cell came out."""
    arguments = _parser().parse_args(argv)
    results = Path(arguments.results)
    options = Options(
        protocols=arguments.protocol,
        systems=arguments.systems,
        sets=arguments.sets,
        splits=arguments.splits,
        data=arguments.data,
        quick=arguments.quick,
    )
    failed = 0
    try:
        for name in arguments.names:
            if name == "page":
                _page(results, arguments.markdown)
                continue
            experiment = experiment_named(name)
            records = Records(results / name)
            failed += run(
                experiment,
                experiment.cells(options),
                records,
                data=arguments.data,
                jobs=arguments.jobs,
                fresh=arguments.fresh,
            )
            print(experiment.markdown(list(records)))
            for path in experiment.figures(list(records), results / name):
                print(f"wrote {path}")
    except TensorlaceError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished cells are kept", file=sys.stderr)
        return 130
    return 1 if failed else 0


def _page(results: Path, text_file: str | None) -> None:
    from tensorlace_lab.pages.page import write

    for path in write(results, Path(text_file) if text_file else None):
        print(f"wrote {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorlace reproduce",
        description="Repeat the experiments of the paper. Finished cells are kept and not "
        "computed again; a run that was stopped goes on where it was.",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument(
        "--protocol",
        type=_words(PROTOCOLS),
        help="published: the authors' procedure as their code has it; corrected: the paper's "
        "method done right; default: TNKMRegressor(); several with commas",
    )
    parser.add_argument("--systems", type=_words(), help="names with commas, or all")
    parser.add_argument("--sets", type=_words(SETS), help="names with commas")
    parser.add_argument("--splits", type=_splits, help="5 for 1 to 5, or 2,3 or 4-6")
    parser.add_argument("--jobs", type=_whole, default=1, help="processes; 0: in this one")
    parser.add_argument("--data", help="directory of the sets; default TENSORLACE_DATA")
    parser.add_argument("--results", default="results", help="directory to write to")
    parser.add_argument("--markdown", help="file for the tables of the page; default: beside it")
    parser.add_argument("--quick", action="store_true", help="a taste in minutes")
    parser.add_argument("--fresh", action="store_true", help="compute finished cells again")
    return parser


def _whole(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


class _words:  # noqa: N801  (a type for argparse, which names it in messages)
    """Words with commas, of a choice if one is given."""

    def __init__(self, choice: Sequence[str] = ()) -> None:
        self._choice = choice

    def __call__(self, text: str) -> tuple[str, ...]:
        found = tuple(word for word in text.split(",") if word)
        unknown = [word for word in found if self._choice and word not in self._choice]
        if unknown or not found:
            choice = ", ".join(self._choice)
            raise argparse.ArgumentTypeError(f"{text!r} is not of {choice or 'any name'}")
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
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} names no split of at least 1")
    return tuple(found)
