"""The table of the README: the default beside the exact Gaussian process and what was published."""

from collections.abc import Sequence

from tensorlace_lab.datasets import UCI
from tensorlace_lab.default.quality import GOALS, beside, mean_of, rows_of
from tensorlace_lab.measuring.cells import Record
from tensorlace_lab.measuring.scores import OURS
from tensorlace_lab.paper import literature

__all__ = ["front", "with_front"]

CAVEATS = {("wine", "Exact GP"): "duplicates", ("protein", "LA-BNN"): "test rows leaked"}
BEGIN, END = "<!-- quality: made by python -m tensorlace_lab pages -->", "<!-- end of quality -->"


def front(quality: Sequence[Record]) -> str:
    """The table, of the records of the quality of the default."""
    lines = [
        "| set | rows | splits | tensorlace | exact GP, same splits | LA-TNKM, published "
        "| best published |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in GOALS:
        rows = rows_of(quality, name, OURS, "default")
        peers = rows_of(quality, name, "scikit-learn GP", "default")
        if rows:
            published = literature.standardised_nll(name, literature.OURS)
            lines.append(
                f"| {name} | {UCI[name].n_rows:,} | {len(rows)} | {mean_of('nll', rows, 2)} | "
                f"{beside('nll', rows, peers, 2)} | {published:.2f} | {_best_published(name)} |"
            )
    return "\n".join(lines)


def with_front(readme: str, quality: Sequence[Record]) -> str:
    """The README with this table between its marks."""
    before, rest = readme.split(BEGIN)
    return f"{before}{BEGIN}\n{front(quality)}\n{END}{rest.split(END)[1]}"


def _best_published(name: str) -> str:
    others = (s for s in literature.COLUMNS if s != literature.OURS)
    found = {s: literature.standardised_nll(name, s) for s in others}
    known = {system: nll for system, nll in found.items() if nll is not None}
    best = min(known, key=lambda system: known[system])
    about = ", ".join([best.removeprefix("Exact "), *filter(None, [CAVEATS.get((name, best))])])
    return f"{known[best]:.2f} ({about})"
