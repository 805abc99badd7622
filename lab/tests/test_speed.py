"""What is computed from seconds."""

import pytest

from tensorlace_lab.experiments import experiment_named
from tensorlace_lab.measuring.cells import Records, size_name
from tensorlace_lab.measuring.processes import isolated
from tensorlace_lab.measuring.runner import Options, run
from tensorlace_lab.speed import airline, first_fit, passes, scaling

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.mark.parametrize("name", ["gram", "predict", "scaling", "passes"])
def test_a_taste(name, tmp_path, monkeypatch):
    """Those that need no other library, at their smallest size."""
    monkeypatch.setattr(passes, "SIZES", {size_name(N=300, D=8, I=3, R=2): 0.5})
    experiment, records, told = experiment_named(name), Records(tmp_path), []
    cells = experiment.asked(Options(quick=True))[:2]
    assert run(experiment, cells, records, tell=told.append) == 0, told
    assert len(records) == len(cells)
    for record in records:
        assert {"machine", "cores", "date", "versions", "command"} <= set(record)
    assert "|" in experiment.markdown(list(records))
    told.clear()
    assert run(experiment, cells, records, tell=told.append) == 0
    assert told == [f"[{name}] {len(cells)} of {len(cells)} cells were there"]


@pytest.mark.parametrize("system", ["tensorlace", "core"])
def test_a_whole_process(system):
    found = isolated(f"tensorlace_lab.speed.whole_process:{system}", rows=300, I=3, R=2)
    assert found["sweeps"] == 10
    assert found["import_s"] + found["fit_s"] < found["process_s"]
    assert ("sklearn_s" in found) == (system == "tensorlace")


def test_a_streamed_table(tmp_path):
    airline.table(tmp_path / "a.parquet", 2_000)
    found = airline.fit(str(tmp_path / "a.parquet"), "numpy")
    assert found["sweeps"] == 10
    objective = found["objective"]
    assert objective == sorted(objective, reverse=True)


def test_exponents_are_slopes():
    records = [
        {
            "protocol": "N",
            "system": "streamed",
            "set": size_name(N=N, D=2, I=3, R=4),
            "metrics": {"sweep_s": 3e-6 * N**1.25},
        }
        for N in (1000, 5000, 20000)
    ]
    (found,) = scaling.exponents(records)
    assert found["exponent"] == pytest.approx(1.25)
    assert found["last_step"] == pytest.approx(1.25)
    assert found["paper"] == 1


def test_the_quickest_process_of_each_system_counts(monkeypatch):
    seconds = iter([3.0, 2.0, 40.0, 4.0, 1.0, 30.0])

    def isolated(where, **size):
        s = next(seconds)
        return {"process_s": s, "import_s": s / 2, "fit_s": s / 4}

    monkeypatch.setattr(first_fit, "isolated", isolated)
    cell = first_fit.EXPERIMENT.cells(first_fit.Options())[0]
    found = first_fit.EXPERIMENT.run(cell, None)["metrics"]
    assert [found[system]["process_s"] for system in first_fit.SYSTEMS] == [3.0, 1.0, 30.0]
    assert found["ratio"]["process_s"] == 10.0
    assert found["ratio, core"]["fit_s"] == 30.0
