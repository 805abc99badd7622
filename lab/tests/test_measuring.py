"""Cells, the runner, fresh processes, splits, scores and tests of differences."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tensorlace import Normal, metrics
from tensorlace.errors import InputError, SourceError
from tensorlace_lab.datasets import load_uci
from tensorlace_lab.measuring.cells import Cell, Records
from tensorlace_lab.measuring.data import UNIQUE, split_of
from tensorlace_lab.measuring.processes import best_of, isolated
from tensorlace_lab.measuring.provenance import provenance
from tensorlace_lab.measuring.runner import Experiment, Options, run
from tensorlace_lab.measuring.scores import LEVELS, score
from tensorlace_lab.measuring.statistics import contenders, mean_and_error, paired_p, ranking
from tests.helpers.data import DIRECTORY, requires_data


def test_load_and_split(directory, monkeypatch):
    X, y, names = load_uci("yacht", directory)
    assert X.shape == (40, 2)
    assert names == ("x1", "x2")
    monkeypatch.setenv("TENSORLACE_DATA", str(directory))
    split = split_of("yacht", 3)
    assert abs(split.y.mean()) < 1e-12
    assert split.y.std() == pytest.approx(1.0)
    assert len(split.y_test) == 4
    original = np.concatenate([split.y, split.y_test]) * split.scale
    assert np.ptp(original) == pytest.approx(np.ptp(y))


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("boston", SourceError, r"no boston\.csv in .*: leave data out to fetch it"),
        ("mars", InputError, "no set 'mars': use boston, "),
    ],
)
def test_missing_data_says_what_to_do(directory, name, error, match):
    with pytest.raises(error, match=match):
        split_of(name, 1, directory)


@requires_data
def test_wine_without_copies():
    plain, once = split_of("wine", 1, DIRECTORY), split_of(UNIQUE, 1, DIRECTORY)
    assert len(plain.y) + len(plain.y_test) == 1599
    rows = np.column_stack([np.vstack([once.X, once.X_test]), [*once.y, *once.y_test]])
    assert len(rows) == len(np.unique(rows, axis=0)) == 1359


def test_scores_by_draws_and_exactly():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(400)
    dist = Normal(np.zeros(400), 0.0, 1.0)
    exact, drawn = score(y, dist), score(y, dist, draws=300)
    assert exact["nll"] == drawn["nll"] == metrics.nll(y, dist)
    assert exact["wcpi95"] != drawn["wcpi95"]
    assert exact["wcpi95"] == pytest.approx(drawn["wcpi95"], rel=0.02)
    gaps = np.abs(np.array(exact["coverages"]) - LEVELS)
    assert gaps.mean() == pytest.approx(exact["rce"])


def test_paired_test_without_correction_is_scipys():
    rng = np.random.default_rng(0)
    d = rng.normal(0.3, 1.0, size=10)
    plain = stats.ttest_1samp(d, 0.0).pvalue
    assert paired_p(d, test_share=0.0) == pytest.approx(plain)
    assert paired_p(d) > plain  # overlapping training sets know less
    assert paired_p([0.5]) == 1.0
    assert paired_p([0.5, 0.5]) == 0.0
    assert math.isnan(mean_and_error([1.0])[1])


def test_contenders():
    close = {s: 1.0 + 0.1 * (-1) ** s for s in range(6)}
    far = {s: 9.0 + 0.01 * s for s in range(6)}
    best, good = contenders({"a": dict.fromkeys(range(6), 1.0), "b": close, "c": far})
    assert good == {"a", "b"}
    assert best in good


def test_ranking_is_scipys():
    scores = np.random.default_rng(0).normal([0.0, 1.0, 2.0, 1.0], size=(9, 4))
    found = ranking(list("abcd"), scores)
    assert found.p == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)
    assert found.critical == pytest.approx(2.569 * math.sqrt(4 * 5 / (6 * 9)), abs=2e-3)  # Demšar
    ties = np.round(scores)
    assert ranking(list("abcd"), ties).p == pytest.approx(
        stats.friedmanchisquare(*ties.T).pvalue, rel=1e-9
    )


class Counting(Experiment):
    """Counts how often each cell is worked on."""

    name = "counting"
    title = "Counting"

    def __init__(self, stop_at=None):
        self.seen, self.stop_at = [], stop_at

    def cells(self, options):
        return [Cell(self.name, "yacht", k, "tnkm", "default") for k in (1, 2, 3, 4)]

    def run(self, cell, data):
        if cell.split == self.stop_at:
            raise KeyboardInterrupt
        self.seen.append(cell.split)
        return {"metrics": {"nll": float(cell.split)}}

    def markdown(self, records):
        return ""


def test_stopped_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "tnkm-default.jsonl"
    first = Counting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        run(first, first.cells(Options()), Records(tmp_path), jobs=0, tell=lambda line: None)
    assert first.seen == [1, 2]
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 4])  # a torn line
    second, told = Counting(), []
    assert run(second, second.cells(Options()), Records(tmp_path), jobs=0, tell=told.append) == 0
    assert second.seen == [3, 4]
    assert "2 of 4 cells were there" in told[0]
    assert told[-1].endswith("0 s left")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["split"] for line in lines] == [1, 2, 3, 4]
    assert {"seed", "versions", "date", "seconds", "peak_mb", "metrics", "command"} <= set(lines[0])
    third = Counting()
    run(third, third.cells(Options()), Records(tmp_path), jobs=0, tell=lambda line: None)
    assert third.seen == []
    run(
        third,
        third.cells(Options())[:1],
        Records(tmp_path),
        fresh=True,
        jobs=0,
        tell=lambda line: None,
    )
    assert third.seen == [1]
    assert len(Records(tmp_path)) == 4


KILLED = """
import os, signal, sys
from pathlib import Path
from test_measuring import Counting
from tensorlace_lab.measuring.cells import Records
from tensorlace_lab.measuring.runner import Options, run

class Dying(Counting):
    def run(self, cell, data):
        print(cell.split, flush=True)
        if cell.split == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(cell, data)

run(Dying(), Dying().cells(Options()), Records(Path(sys.argv[1])), jobs=0)
"""


def test_killed_run_loses_one_cell(tmp_path):
    """SIGKILL in the middle of the third cell; the next run begins with that one."""

    here = Path(__file__).resolve().parent
    paths = [str(here.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]

    def work(die_at):
        return subprocess.run(
            [sys.executable, "-c", KILLED, str(tmp_path), str(die_at)],
            cwd=here, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip

    first = work(3)
    assert first.returncode == -signal.SIGKILL
    assert first.stdout.split() == ["1", "2", "3"]
    assert len(Records(tmp_path)) == 2
    second = work(0)
    assert second.returncode == 0
    assert second.stdout.split() == ["3", "4"]
    assert sorted(r["split"] for r in Records(tmp_path)) == [1, 2, 3, 4]


def test_broken_line_in_the_middle_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_text("{\n{}\n")
    with pytest.raises(InputError, match="line 1 of"):
        Records(tmp_path)


def test_failed_cell_does_not_cost_the_others(tmp_path):
    class Failing(Counting):
        def run(self, cell, data):
            if cell.split == 2:
                raise ValueError("no luck")
            return super().run(cell, data)

    told = []
    experiment, records = Failing(), Records(tmp_path)
    assert run(experiment, experiment.cells(Options()), records, jobs=0, tell=told.append) == 1
    assert experiment.seen == [1, 3, 4]
    assert any("failed: ValueError: no luck" in line for line in told)


def test_numbers_that_are_not_finite_become_null(tmp_path):
    records = Records(tmp_path)
    cell = Cell("x", "yacht", 1, "tnkm", "default")
    records.add(cell, {"metrics": {"nll": math.inf, "a": np.array([1.0, math.nan])}})
    assert next(iter(Records(tmp_path)))["metrics"] == {"nll": None, "a": [1.0, None]}


def test_cells_of_another_machine_or_version_are_measured_again_where_that_matters(tmp_path):
    class Local(Counting):
        packages = ("numpy",)
        local = True

    cell = Cell("counting", "yacht", 1, "tnkm")
    here = provenance(Local.packages)
    for change, times in (({}, 0), ({"machine": "another"}, 1), ({"versions": {}}, 1)):
        records, experiment = Records(tmp_path / str(change)), Local()
        records.add(cell, {**here, **change, "metrics": {}})
        run(experiment, [cell], records, jobs=0, tell=lambda line: None)
        assert len(experiment.seen) == times
        assert len(records) == 1


def test_what_an_experiment_does_not_have_is_refused():
    with pytest.raises(InputError, match="counting has no set 'mars': yacht"):
        Counting().asked(Options(sets=("mars",)))
    with pytest.raises(InputError, match="counting has no protocol 'wishful': default"):
        Counting().asked(Options(protocols=("wishful",)))
    assert Counting().asked(Options(systems=("nobody",))) == []
    assert len(Counting().asked(Options(systems=("all",), sets=("yacht",)))) == 4


def test_a_process_of_its_own():
    found = isolated("tensorlace_lab.measuring.provenance:provenance", packages=["numpy"])
    assert found["versions"]["numpy"] == np.__version__
    assert found["peak_mb"] > 5
    assert found["process_s"] > 0
    with pytest.raises(RuntimeError, match="AttributeError"):
        isolated("tensorlace_lab.measuring.processes:nothing")
    with pytest.raises(subprocess.TimeoutExpired):
        isolated("tensorlace_lab.measuring.provenance:provenance", timeout=1e-3, packages=[])


def test_nothing_but_the_standard_library_is_loaded_before_a_first_fit():
    code = "import sys, tensorlace_lab.speed.whole_process, tensorlace_lab.measuring.processes\n"
    code += "print(sorted({'numpy', 'tensorlace', 'sklearn'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_functions_take_turns():
    calls = []
    seconds = best_of(3, lambda: calls.append("a"), lambda: calls.append("b"))
    assert calls == ["a", "b"] * 3
    assert all(0 < s < 1 for s in seconds)
