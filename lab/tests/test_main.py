"""The command of the laboratory from end to end."""

from html import escape

import pytest

from tensorlace_lab.__main__ import main
from tensorlace_lab.experiments import DEFAULT, EARLIER, NAMES, PAPER, SPEED, experiment_named
from tensorlace_lab.measuring.cells import Records
from tensorlace_lab.measuring.runner import Experiment, Options
from tensorlace_lab.paper import ablation, complexity, corrected, equal_size, published

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")


def test_commands_from_end_to_end(directory, tmp_path, capsys, monkeypatch):
    """Every experiment on a tiny set, the page last; then again, when nothing is left to do."""
    monkeypatch.setattr(published, "SIZES", (2,))
    monkeypatch.setattr(corrected, "STARTS", 1)
    monkeypatch.setattr(equal_size, "SWEEPS", 10)
    monkeypatch.setattr(equal_size.compare, "__defaults__", ((2, 3),))
    monkeypatch.setattr(ablation, "RANK", 2)
    monkeypatch.setattr(ablation.curve, "__kwdefaults__", {"linearized": True, "size": (2, 3)})
    monkeypatch.setattr(complexity, "QUICK", {"N": 64, "D": 2, "I": 2, "R": 1})
    monkeypatch.setattr(complexity, "FACTORS", (1, 2))
    results = tmp_path / "results"
    how = ["--quick", "--data", str(directory), "--results", str(results), "--splits", "1"]
    how += ["--jobs", "0"]
    names = list(PAPER)
    assert main([*names, "page", *how]) == 0
    out = capsys.readouterr()
    assert "paper.html" in out.out
    assert "left" in out.err
    for name in names:
        assert len(Records(results / name)) > 0
        assert escape(experiment_named(name).title) in (results / "paper.html").read_text()
    page = (results / "paper.html").read_text()
    assert "published" in page
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    for figure in ("cubic", "linearization", "hessians"):
        assert (results / figure / f"{figure}.svg").exists()
    sizes = {path: path.stat().st_size for path in results.glob("*/*.jsonl")}
    assert main([*names, *how]) == 0
    assert sizes == {path: path.stat().st_size for path in results.glob("*/*.jsonl")}
    assert "1/" not in capsys.readouterr().err


def test_commands_refuse_nonsense(tmp_path, capsys):
    for argv in (["uci", "--splits", "0"], ["uci", "--sets", ","], ["uci", "--jobs", "-1"]):
        with pytest.raises(SystemExit):
            main(argv)
    assert main(["uci", "--sets", "mars", "--results", str(tmp_path)]) == 2
    assert "uci has no set 'mars'" in capsys.readouterr().err
    how = ["--quick", "--splits", "1", "--protocol", "published"]  # in a process of its own
    assert main(["uci", *how, "--data", str(tmp_path), "--results", str(tmp_path)]) == 1
    assert "no yacht.csv in" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_is_what_its_name_says(name):
    try:
        experiment = experiment_named(name)
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    assert isinstance(experiment, Experiment)
    assert experiment.name == name
    for quick in (True, False):
        cells = experiment.asked(Options(quick=quick))
        assert len(set(cells)) == len(cells) > 0
        assert {cell.experiment for cell in cells} == {name}


def test_a_taste_leaves_the_results_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(complexity, "QUICK", {"N": 64, "D": 2, "I": 2, "R": 1})
    monkeypatch.setattr(complexity, "FACTORS", (1,))
    (tmp_path / "lab" / "results").mkdir(parents=True)
    assert main(["complexity", "--quick", "--jobs", "0", "--systems", "map"]) == 0
    assert len(Records(tmp_path / "out" / "results" / "complexity")) == 1
    assert not any((tmp_path / "lab" / "results").iterdir())


def test_every_result_belongs_to_an_experiment():
    assert {*PAPER, *DEFAULT, *EARLIER, *SPEED} == set(NAMES)
