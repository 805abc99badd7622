"""The skeletons of docs/extend run as they are printed, and end in checks that can fail."""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

from tensorlace._registry import Registry

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "extend"
PAGES = [path for path in sorted(FOLDER.glob("*.md")) if path.name != "index.md"]
LONGEST = 110
"""Lines of a page, skeleton and checks included."""


def code(page):
    """Blocks of Python of a page, each on the lines that it has there."""
    text = page.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M):
        yield "\n" * text[: block.start(1)].count("\n") + block[1]


def registries():
    """All registries that modules of the library or the laboratory hold."""
    modules = [m for name, m in [*sys.modules.items()] if name.startswith("tensorlace")]
    return {id(x): x for m in modules for x in vars(m).values() if isinstance(x, Registry)}


@pytest.fixture
def clean_registries():
    """What a page registers is taken out again."""
    importlib.import_module("tensorlace.estimators.parameters")  # and with it all that has names
    before = {key: {*registry} for key, registry in registries().items()}
    yield
    for key, registry in registries().items():
        for name in {*registry} - before.get(key, {*registry}):
            registry.remove(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_skeleton_runs(page, tmp_path, monkeypatch, clean_registries):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for block in code(page):
        exec(compile(block, str(page.relative_to(ROOT)), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short_and_ends_in_a_check(page):
    assert len(page.read_text().splitlines()) <= LONGEST
    *_, last = code(page)
    end = ast.parse(last).body[-1]
    while isinstance(end, ast.For | ast.With):
        end = end.body[-1]
    assert isinstance(end, ast.Assert), "the last line of the last block is no assert"


def test_all_pages_are_listed():
    listed = re.search(r"```{toctree}.*?\n\n(.*?)```", (FOLDER / "index.md").read_text(), re.S)
    assert listed is not None
    assert {*listed[1].split()} == {page.stem for page in PAGES}
