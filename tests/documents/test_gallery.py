"""The documentation builds without a warning, and with it every script of the gallery runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """All pages, from a copy, because the gallery writes into its sources."""
    folder = tmp_path_factory.mktemp("documentation")
    made = shutil.ignore_patterns("_build", "examples", "generated", "sg_execution_times.rst")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=made)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", "html"]
    path = os.pathsep.join(
        [str(ROOT / "src"), str(ROOT / "lab" / "src"), os.environ.get("PYTHONPATH", "")]
    )
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # others test as well
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **one, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_of_the_gallery_makes_pictures(built, script):
    text = script.read_text()
    figures = text.count("plt.subplots(") + len(re.findall(r"^EffectsDisplay", text, re.M))
    made = list((built / "_images").glob(f"sphx_glr_{script.stem}_0*.png"))
    assert len(made) == figures > 0


def test_pages_ask_nothing_of_the_network(built):
    """No script, style, font or picture from elsewhere; links that people follow are fine."""
    fetched = re.compile(
        r"""<(?:script|link|img|iframe|source)[^>]+(?:src|href)=["'](?:https?:)?//"""
    )
    for page in built.rglob("*.html"):
        assert not fetched.search(page.read_text()), page
    for style in built.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", style.read_text()), style


def test_mathematics_is_mathml(built):
    page = (built / "mathematics.html").read_text()
    assert page.count('display="block"') >= 30
    assert "$" not in re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)


def test_every_public_name_is_in_the_reference(built):
    import tensorlace
    from tensorlace import displays, metrics, sources
    from tensorlace_lab import systems as baselines

    listed = "".join(page.read_text() for page in (built / "api").glob("*.html"))
    modules = (tensorlace, baselines, displays, metrics, sources)
    names = {f"{m.__name__}.{n}" for m in modules for n in m.__all__}
    names -= {f"{baselines.__name__}.{n}" for n in ("SYSTEMS", "PAPER", "PEERS")}
    names -= {"tensorlace.__version__"}
    ids = set(re.findall(r'id="(tensorlace[\w.]*)"', listed))
    ends = {name.rsplit(".", 1)[-1] for name in ids}
    modules_listed = {"kinds", "metrics", "sources"}
    assert {name for name in names if name.rsplit(".", 1)[-1] not in ends | modules_listed} == set()
