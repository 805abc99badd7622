"""Two distributions: what is in the wheel of each."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def contents(project):
    """Paths in the wheel of a project."""
    found = WheelBuilder(str(project)).recurse_included_files()
    return {file.distribution_path.replace("\\", "/") for file in found}


def test_the_library_ships_nothing_of_the_laboratory():
    found = contents(ROOT)
    assert {path.partition("/")[0] for path in found} == {"tensorlace"}
    assert {"tensorlace/baselines.py", "tensorlace/py.typed"} <= found
    assert not [path for path in found if "lab/" in path or "results" in path]


def test_the_laboratory_ships_nothing_of_the_library():
    found = contents(ROOT / "lab")
    assert {path.partition("/")[0] for path in found} == {"tensorlace_lab"}
    assert {"tensorlace_lab/__main__.py", "tensorlace_lab/py.typed"} <= found
