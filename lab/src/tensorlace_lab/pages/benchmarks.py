"""The page of seconds and memory: a section for each experiment, and where it comes from."""

from pathlib import Path

from tensorlace_lab.experiments import SPEED, experiment_named
from tensorlace_lab.measuring.cells import Record, Records

__all__ = ["write"]

HEAD = """# Benchmarks

Everything on this page is read from the files in `lab/results/`, one folder for each section, made
by the command named below its table. `python -m tensorlace_lab pages` writes this page. Ratios are
taken within one run. N is the number of rows, D of columns, I of basis functions per column and R
the rank.
"""


def write(results: Path, docs: Path) -> Path:
    """Write the page for the results in one folder into another, and its figures beside it."""
    parts, missing = [HEAD], []
    for name in SPEED:
        experiment, records = experiment_named(name), list(Records(results / name))
        if not records:
            missing.append(name)
            continue
        experiment.figures(records, docs / "benchmarks")
        text = experiment.markdown(records)
        parts.append(f"## {experiment.title}\n\n{text}\n\n{_footer(name, records[-1])}\n")
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.\n")
    page = docs / "benchmarks.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _footer(name: str, last: Record) -> str:
    versions = dict(last["versions"])
    python = versions.pop("python")
    using = ", ".join(f"{package} {version}" for package, version in versions.items())
    return (
        f"*`python -m tensorlace_lab {name}`, {last['date']}, {last['machine']}, "
        f"{last['cores']} cores, Python {python}, {using}.*"
    )
