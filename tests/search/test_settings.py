"""Constants of the search: each is explained, and its section of the decisions exists."""

import ast
import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from tensorlace.search import settings
from tensorlace.search.settings import SearchSettings

ROOT = Path(__file__).parents[2]
GROUPS = [f.name for f in fields(SearchSettings)]


def documented(group):
    """Text after each constant of a group."""
    cls = type(getattr(SearchSettings(), group))
    (node,) = ast.parse(inspect.getsource(cls)).body
    return {
        line.target.id: " ".join(text.value.value.split())
        for line, text in zip(node.body, node.body[1:], strict=False)
        if isinstance(line, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def anchors():
    """Anchors of the page of decisions, as the documentation and code hosts make them."""
    page = (ROOT / "docs" / "decisions.md").read_text()
    titles = re.findall(r"^##+ (.+)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("group", GROUPS)
def test_every_constant_has_a_sentence_and_a_section(group):
    texts, constants = documented(group), fields(getattr(SearchSettings(), group))
    assert set(texts) == {f.name for f in constants}
    for name, text in texts.items():
        sentence, _, anchor = text.rpartition(" decisions.md#")
        assert len(sentence) > 20, name
        assert sentence[0].isupper(), name
        assert sentence.endswith("."), name
        assert anchor in anchors(), name
    assert len(set(texts.values())) == len(texts)


def test_no_two_constants_have_the_same_name_and_another_meaning():
    names = [(f.name, g) for g in GROUPS for f in fields(getattr(SearchSettings(), g))]
    assert len(set(names)) == len(names) > 80


def test_settings_cannot_be_changed_in_place():
    for group in GROUPS:
        part = getattr(SearchSettings(), group)
        assert is_dataclass(part)
        hash(part)


def test_other_modules_of_the_room_have_no_constants():
    own = Path(settings.__file__).parent
    others = [path for path in own.parent.rglob("*.py") if own not in path.parents]
    assert len(others) > 15
    for path in others:
        for node in ast.parse(path.read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            assert not [n for n in names if n.isupper() and len(n) > 1], path.name
