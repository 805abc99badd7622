"""Examples and commands of the README and of docs/ run."""

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from tensorlace import TNKMRegressor

ROOT = Path(__file__).parents[2]


def pages():
    """The README and every page of docs/ that people write."""
    made = {"examples", "generated"}
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(p for p in found if not made & set(p.parts))]


def blocks(path):
    """Code and printed text of a page, in order: (language, content, line)."""
    text = path.read_text()
    for found in re.finditer(r"^```(python|text|console)\n(.*?)^```", text, re.S | re.M):
        yield found[1], found[2], text[: found.start(2)].count("\n")


PAGES = [
    page
    for page in pages()
    if page.parent.name != "extend" and any(kind == "python" for kind, *_ in blocks(page))
]
"""Those with examples; `test_extend` runs the pages that add to registries."""


def page_name(page):
    return str(page.relative_to(ROOT))


# a cluster, and what it loads, warn in their own ways
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_examples_of_a_page_run(page, capsys, tmp_path, monkeypatch):
    """All of them in one session; a block of text after one is what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {"__name__": "page"}
    printed = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for kind, content, line in blocks(page):
            if kind == "python":
                code = compile("\n" * line + content, page_name(page), "exec")
                exec(code, namespace)
                printed = capsys.readouterr().out
            elif kind == "text" and printed is not None:
                assert printed.split() == content.split(), f"line {line}"


def commands():
    for page in pages():
        for kind, content, line in blocks(page):
            if kind == "console":
                for text in content.splitlines():
                    if text.startswith("$ tensorlace "):
                        yield pytest.param(text[2:], id=f"{page_name(page)}:{line}:{text[13:40]}")


def arguments(command):
    """Words of a command, without the program and what comes after a pipe."""
    words = shlex.split(command)[1:]
    return words[: words.index("|")] if "|" in words else words


@pytest.mark.parametrize("command", list(commands()))
def test_commands_of_the_pages_are_understood(command):
    from tensorlace.cli.app import app

    name, *words = arguments(command)
    known = typer.main.get_command(app).commands
    known[name].make_context(name, words)


def test_commands_of_the_guide_run(tmp_path, monkeypatch):
    """In their order, with fits of rank 1 in place of searches, and one rival."""
    from tensorlace.cli.app import app
    from tensorlace.cli.commands import compare, fit

    quick = {"rank": 1, "n_basis": 3, "tol": 1e-2}
    monkeypatch.setattr(fit, "TNKMRegressor", lambda **how: TNKMRegressor(**{**how, **quick}))
    linear = {"BayesianRidge": compare.rivals(10)["BayesianRidge"]}
    monkeypatch.setattr(compare, "rivals", lambda rows: linear)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(60), "built": rng.integers(1950, 2020, 60)})
    table["state"] = rng.choice(["poor", "fair", "good"], 60)
    table["price"] = table["built"] / 10 + rng.normal(size=60)
    for name in ("houses", "new", "test"):
        table.to_csv(f"{name}.csv", index=False)
    done = []
    for kind, content, _ in blocks(ROOT / "docs" / "howto" / "command-line.md"):
        for text in content.splitlines() if kind == "console" else ():
            name, *words = arguments(text[2:])
            if name == "reproduce":  # minutes: its own tests run it
                continue
            result = CliRunner().invoke(app, [name, *words])
            assert result.exit_code == 0, f"{text}\n{result.output}"
            done.append(name)
    assert {"fit", "predict", "evaluate", "inspect", "compare", "schema"} == set(done)
    added = list(pd.read_csv("out.csv").columns[-6:])
    assert added == ["mean", "std", "lower", "upper", "novelty", "unlike"]


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=page_name
)
def test_links_between_pages_lead_somewhere(page):
    made = ("docs/examples/", "docs/api/generated/")  # by the build
    for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" in target:
            continue
        path = (ROOT if target.startswith("/") else page.parent) / target.lstrip("/")
        inside = page_name(path.resolve())
        assert path.exists() or inside.startswith(made), f"{page_name(page)}: {target}"


def test_requirements_name_no_host():
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "://" not in text
        assert "--hash=sha256:" in text
