"""All pages of the documentation that results are on, and the table of the README."""

from pathlib import Path

from tensorlace_lab.experiments import DEFAULT, experiment_named
from tensorlace_lab.measuring.cells import Records
from tensorlace_lab.pages import benchmarks, front, paper

__all__ = ["write"]


def write(results: Path, docs: Path, readme: Path) -> list[Path]:
    """Write ``uci.md``, ``benchmarks.md`` and one page per experiment on the default; the files."""
    files = [*paper.write(results, docs / "uci.md"), benchmarks.write(results, docs)]
    for name in DEFAULT:
        experiment = experiment_named(name)
        text = experiment.markdown(list(Records(results / name)))
        files.append(docs / f"{name}.md")
        files[-1].write_text(f"# {experiment.title}\n\n{text}\n", encoding="utf-8")
    quality = list(Records(results / "quality"))
    text = front.with_front(readme.read_text(encoding="utf-8"), quality)
    readme.write_text(text, encoding="utf-8")
    return [*files, readme]
