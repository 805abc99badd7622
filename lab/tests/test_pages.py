"""Pages say what the results say, and results how they were made."""

import math
import shlex
from pathlib import Path

import pytest

from tensorlace_lab.default.quality import beside
from tensorlace_lab.experiments import DEFAULT, NAMES
from tensorlace_lab.measuring.cells import Records
from tensorlace_lab.pages import benchmarks, documents, front, paper
from tensorlace_lab.pages.markup import html_table
from tensorlace_lab.paper import score_tables

ROOT = Path(__file__).parents[2]
RESULTS, DOCS = ROOT / "lab" / "results", ROOT / "docs"
OLD = "is old: run python -m tensorlace_lab pages"


def test_the_page_of_benchmarks_is_up_to_date(tmp_path):
    page = benchmarks.write(RESULTS, tmp_path)
    assert page.read_text() == (DOCS / "benchmarks.md").read_text(), f"benchmarks.md {OLD}"
    names = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    assert names == {path.name for path in (DOCS / "benchmarks").glob("*.svg")}


@pytest.mark.parametrize("name", DEFAULT)
def test_pages_of_the_default_are_up_to_date(name):
    assert (DOCS / f"{name}.md").read_text() == documents.page(name, RESULTS), f"{name}.md {OLD}"


def test_the_table_of_the_readme_is_up_to_date():
    text = (ROOT / "README.md").read_text()
    assert front.with_front(text, list(Records(RESULTS / "quality"))) == text, f"README {OLD}"


def test_the_page_of_the_paper_is_up_to_date(tmp_path, monkeypatch):
    for directory in RESULTS.iterdir():
        if directory.is_dir():
            (tmp_path / directory.name).symlink_to(directory)
    monkeypatch.setattr("tensorlace_lab.writing.charts.save", lambda drawn, path: path)
    _, text = paper.write(tmp_path, tmp_path / "uci.md")
    assert text.read_text() == (DOCS / "uci.md").read_text(), f"uci.md {OLD}"


@pytest.mark.parametrize("name", NAMES)
def test_a_result_says_how_it_was_made(name):
    records = Records(RESULTS / name)
    assert len(records) > 0
    for record in records:
        assert {"seed", "date", "versions", "metrics"} <= set(record)
        assert {"tensorlace", "python"} <= set(record["versions"])
        words = shlex.split(record["command"])
        start = ["tensorlace", "reproduce"], ["python", "-m", "tensorlace_lab"]
        assert words[: words.index(name)] in start
        assert "/" not in record["command"]


def test_missing_results_are_noted(tmp_path):
    text = benchmarks.write(tmp_path, tmp_path).read_text()
    assert "Not measured yet: sweep, first_fit, scaling" in text


def test_peers_are_compared_on_the_same_splits():
    ours = [{"split": s, "metrics": {"nll": float(s)}} for s in (1, 2, 3)]
    theirs = [{"split": s, "metrics": {"nll": 10.0 * s}} for s in (2, 3, 4)]
    assert beside("nll", ours, theirs, 1) == "25.0 (ours 2.5; 2 splits)"
    assert beside("nll", ours, ours, 1) == "2.0"
    assert beside("nll", ours, [], 1) == "–"


def test_tables_and_page_of_made_up_records(made_up, tmp_path):
    table = score_tables.scores(list(made_up), ["yacht"], "nll")
    assert "| tensorlace | **-2." in table
    assert table.count("**") == 2
    original = score_tables.grouped(list(made_up), "nll", original=True)["yacht"]["tensorlace"][1]
    plain = score_tables.grouped(list(made_up), "nll")["yacht"]["tensorlace"][1]
    assert original == pytest.approx(plain + math.log(10.0))
    wide = score_tables.grouped(list(made_up), "rmse", original=True)["wine"]["tensorlace"][1]
    assert wide == pytest.approx(1.0)
    page, text = paper.write(tmp_path, tmp_path / "docs.md")
    assert "Friedman" in page.read_text()
    for content in (page.read_text(), text.read_text()):
        assert "240 of the 1599 rows" in content
        assert "LA-TNKM, corrected" in content
        assert "NLL, original units" in content


def test_markup_escapes():
    assert html_table("| a<b |\n| --- |\n| *x* |") == (
        '<div class="wide"><table><thead><tr><th>a&lt;b</th></tr></thead>'
        "<tbody><tr><td><em>x</em></td></tr></tbody></table></div>"
    )
