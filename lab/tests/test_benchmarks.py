"""The page of benchmarks says what the result files say."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorlace import Normal

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tensorlace_lab.default import simple, tables
from tensorlace_lab.measuring import bench_cells as cells
from tensorlace_lab.measuring import bench_record as record
from tensorlace_lab.pages import bench_report as report
from tensorlace_lab.pages import quality_page
from tensorlace_lab.speed import scaling

RESULTS = ROOT / "results" / "bench"
FILES = sorted(RESULTS.glob("*.json"))


def test_the_page_is_up_to_date(tmp_path):
    page = report.write(RESULTS, tmp_path)
    assert page.read_text() == (ROOT / "docs" / "benchmarks.md").read_text(), (
        "docs/benchmarks.md is old: run python -m benchmarks report"
    )
    names = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    assert names == {path.name for path in (ROOT / "docs" / "benchmarks").glob("*.svg")}


def test_pages_of_the_default_are_up_to_date():
    directory = ROOT / "results" / "quality"
    done = {path.stem: cells.finished(directory, path.stem) for path in directory.glob("*.jsonl")}
    for path, text in quality_page.pages(done).items():
        assert path.read_text() == text, f"{path.name} is old: run python -m benchmarks quality"


@pytest.mark.parametrize("module", [tables, simple], ids=["tables", "simple"])
def test_pages_of_made_tables_are_up_to_date(module):
    name = module.__name__.rpartition(".")[2]
    text = module.page(ROOT / "results" / name)
    assert (ROOT / "docs" / f"{name}.md").read_text() == text, (
        f"docs/{name}.md is old: run python -m benchmarks {name}"
    )


def test_peers_are_compared_on_the_same_splits():
    ours = [{"split": s, "nll": float(s)} for s in (1, 2, 3)]
    theirs = [{"split": s, "nll": 10.0 * s} for s in (2, 3, 4)]
    assert quality_page.beside("nll", ours, theirs, 1) == "25.0 (ours 2.5; 2 splits)"
    assert quality_page.beside("nll", ours, ours, 1) == "2.0"
    assert quality_page.beside("nll", ours, [], 1) == "–"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_result_says_how_it_was_made(path):
    found = json.loads(path.read_text())
    assert found["command"].startswith(f"python -m benchmarks {path.stem}")
    assert {"seed", "date", "python", "machine", "versions", "rows"} <= set(found)
    assert "tensorlace" in found["versions"]
    assert "/" not in found["command"]


def test_missing_results_are_noted(tmp_path):
    text = report.write(tmp_path, tmp_path).read_text()
    assert "Not measured yet: sweep, first_fit, scaling" in text


def test_exponents_are_slopes():
    rows = [
        {"axis": "N", "where": "streamed", "N": N, "sweep_s": 3e-6 * N**1.25}
        for N in (1000, 5000, 20000)
    ]
    (found,) = scaling.exponents(rows)
    assert found["exponent"] == pytest.approx(1.25)
    assert found["last_step"] == pytest.approx(1.25)
    assert found["paper"] == 1


def test_finished_rows_are_not_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    first = record.Finished("try", 0, ("N",), ("numpy",), fresh=False)
    first.add({"N": 1, "s": 0.123456})
    first.add({"N": 2, "s": 2.0})
    first.add({"N": 2, "s": 3.0})
    again = record.Finished("try", 0, ("N",), ("numpy",), fresh=False)
    assert again.rows == [{"N": 1, "s": 0.1235}, {"N": 2, "s": 3.0}]
    assert {"N": 2} in again
    assert {"N": 3} not in again
    assert record.Finished("try", 0, ("N",), ("numpy",), fresh=True).rows == []
    assert record.Finished("try", 0, ("N",), ("numpy", "scipy"), fresh=False).rows == []


def test_a_process_of_its_own():
    row = record.isolated("benchmarks.record:versions_of", names=["numpy"])
    assert row["numpy"]
    assert row["peak_mb"] > 5
    with pytest.raises(RuntimeError, match="AttributeError"):
        record.isolated("benchmarks.record:nothing")


def test_quantiles_score_like_the_distribution_they_are_from():
    rng = np.random.default_rng(0)
    mean, std = rng.standard_normal(4000), rng.uniform(0.5, 2.0, 4000)
    dist = Normal(mean, np.zeros(4000), std)
    y = dist.sample(1, rng=1)[:, 0]
    found = tables.pinball_crps(y, dist.quantile(tables.LEVELS))
    ratio = found.mean() / dist.crps(y).mean()
    assert f"{1 - ratio:.1%} below" == tables.bias() == "0.4% below"
    # by hand: all quantiles of a certain forecast are equal, and its score is the absolute error
    certain = np.repeat(mean[:, None], len(tables.LEVELS), axis=1)
    np.testing.assert_allclose(
        tables.pinball_crps(y, certain), np.abs(y - mean) * 19 / 20, rtol=1e-12
    )


def test_a_cell_is_measured_once(tmp_path, capsys):
    calls = []

    def measure(system, set, seed):  # noqa: A002
        calls.append((system, set, seed))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return {"score": float(seed), "about": {"why": [1]}}

    todo = [(system, {"set": "s", "seed": k}) for k in (1, 2) for system in ("a", "b")]
    run = (measure, lambda system, row: f"{system} {row['score']}", "python -m x", ("numpy",))
    with pytest.raises(KeyboardInterrupt):
        cells.measure_missing(tmp_path / "new", todo, *run)
    cells.measure_missing(tmp_path / "new", todo, *run)
    assert calls == [("a", "s", 1), ("b", "s", 1), ("a", "s", 2), ("a", "s", 2), ("b", "s", 2)]
    assert capsys.readouterr().out == "a 1.0\nb 1.0\na 2.0\nb 2.0\n"
    rows = cells.finished(tmp_path / "new", "a")
    assert [row["seed"] for row in rows] == [1, 2]
    assert {"date", "python", "versions", "command"} < set(rows[0])
    assert cells.finished(tmp_path / "new", "c") == []
