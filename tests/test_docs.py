"""The README's examples run, and the tree keeps its shape."""

import ast
import re
import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tensorlace"
MODULES = sorted(SOURCE.rglob("*.py"))
# imports go one way: a module may import only from modules that stand before it
ORDER = [
    *("errors", "bases", "summaries", "warps", "kinds", "sources", "rotation", "columns"),
    *(
        "networks",
        "gram",
        "engines",
        "native",
        "rows",
        "streaming",
        "cluster",
        "subsample",
        "lapack",
        "background",
        "linalg",
        "conjugate",
        "linearisation",
        "solver",
        "als",
        "gauss_newton",
        "matrix_free",
    ),
    *(
        "posterior",
        "truncation",
        "curvature",
        "precision",
        "settings",
        "checkpoints",
        "runs",
        "surplus",
        "inference",
    ),
    *(
        "predictive",
        "residuals",
        "checks",
        "variances",
        "novelty",
        "machines",
        "noise",
        "stacking",
        "mixtures",
        "noise_choice",
        "pruning",
        "averages",
        "metrics",
        "sizes",
        "config",
        "arguments",
        "candidates",
        "fitting",
        "trials",
        "rounds",
        "search",
    ),
    *("encoding", "tables", "effects", "overview", "explanations", "effects_display"),
    *("reporting", "training", "fits", "predictions", "calibration", "estimators", "displays"),
    *("grids", "folds", "cross_validation"),
    *(
        "conformity",
        "sealed",
        "codec",
        "records",
        "model_file",
        "thinning",
        "directions",
        "compact",
        "report",
        "tensor_train",
        "datasets",
        "baselines",
        "experiments",
        "demo",
        "cli",
    ),
]


def test_readme_examples_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) >= 2
    namespace: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            exec(compile(block, "README.md", "exec"), namespace)
    assert "rmse" in capsys.readouterr().out


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_is_small_and_imports_go_one_way(path):
    text = path.read_text()
    lines = len(text.splitlines())
    assert lines <= 300, f"{lines} lines"
    module = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if module == "__init__":
        return
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorlace"):
            parts = node.module.split(".")
            names = parts[1:2] or [alias.name for alias in node.names]
        for name in names:
            if name != module:
                assert ORDER.index(name) < ORDER.index(module), f"{module} imports {name}"


def test_requirements_name_no_host():
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "://" not in text
        assert "--hash=sha256:" in text
