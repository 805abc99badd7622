"""All pages of the documentation that results are on, and the table of the README."""

from pathlib import Path

from tensorlace_lab.experiments import DEFAULT, experiment_named
from tensorlace_lab.measuring.cells import Records
from tensorlace_lab.pages import benchmarks, front, paper

__all__ = ["page", "write"]


def write(results: Path, docs: Path, readme: Path) -> list[Path]:
    """Write ``uci.md``, ``benchmarks.md`` and one page per experiment on the default; the files."""
    files = [*paper.write(results, docs / "uci.md"), benchmarks.write(results, docs)]
    for name in DEFAULT:
        files.append(docs / f"{name}.md")
        files[-1].write_text(page(name, results), encoding="utf-8")
    quality = list(Records(results / "quality"))
    text = front.with_front(readme.read_text(encoding="utf-8"), quality)
    readme.write_text(text, encoding="utf-8")
    return [*files, readme]


def page(name: str, results: Path) -> str:
    """The page of an experiment on the default, with the records it is compared with."""
    experiment = experiment_named(name)
    records = [r for of in (*experiment.beside, name) for r in Records(results / of)]
    return f"# {experiment.title}\n\n{experiment.markdown(records)}\n"
