"""The page of benchmarks says what the result files say."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import record, report, scaling  # noqa: E402

RESULTS = ROOT / "results" / "bench"
FILES = sorted(RESULTS.glob("*.json"))


def test_the_page_is_up_to_date(tmp_path):
    page = report.write(RESULTS, tmp_path)
    assert page.read_text() == (ROOT / "docs" / "benchmarks.md").read_text(), (
        "docs/benchmarks.md is old: run python -m benchmarks report"
    )
    names = {path.name for path in (tmp_path / "benchmarks").iterdir()}
    assert names == {path.name for path in (ROOT / "docs" / "benchmarks").glob("*.svg")}


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
