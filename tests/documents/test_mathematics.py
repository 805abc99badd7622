"""docs/mathematics.md and the source name the same equations."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "mathematics.md").read_text()
CITED = re.compile(r"\b(?:eq\.|theorem|lemma|definition)\s+\(?([A-Za-z]\w+)\)?")


def entries():
    """Sections of the page: (label or None, names of what implements it)."""
    for section in re.split(r"^### ", PAGE, flags=re.M)[1:]:
        section = re.split(r"^## ", section, flags=re.M)[0]
        heading, body = section.split("\n", 1)
        label = re.search(r"`(.+?)`", heading)
        names = re.findall(r"`(tensorlace\.[\w.]+)`", body)
        yield (label[1] if label else None), names, heading


ENTRIES = list(entries())


def found(name):
    """The object with a dotted name."""
    parts = name.split(".")
    for k in range(len(parts) - 1, 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part)
        return thing
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize(("label", "names", "heading"), ENTRIES, ids=[e[2] for e in ENTRIES])
def test_what_implements_an_equation_exists_and_cites_it(label, names, heading):
    assert names
    for name in names:
        thing = found(name)
        if label is not None:
            thing = thing.fget if isinstance(thing, property) else thing
            assert re.search(rf"\b{re.escape(label)}\b", inspect.getsource(thing)), name


def test_every_equation_that_the_source_cites_is_on_the_page():
    on_page = {label for label, *_ in ENTRIES}
    cited = {
        label: str(path)
        for path in (ROOT / "src" / "tensorlace").rglob("*.py")
        for label in CITED.findall(path.read_text())
    }
    assert len(cited) >= 15
    assert not set(cited) - on_page, {k: v for k, v in cited.items() if k not in on_page}


def test_formulas_are_closed():
    assert PAGE.count("$$") % 2 == 0
    assert len(ENTRIES) >= 30
