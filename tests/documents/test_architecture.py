"""The tree keeps its shape: rooms, the direction of imports, small folders, mirrored tests."""

import ast
import importlib
import itertools
import re
import subprocess
import sys
import textwrap
import tomllib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tensorlace"
TESTS = ROOT / "tests"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
ROOMS = [
    room.strip()
    for layer in reversed(CONTRACTS["contracts"][0]["layers"])
    for room in layer.split("|")
]
"""From bottom to top."""
COMMON = {room for room in ROOMS if room.startswith("_")} | {"errors"}
"""What every room may import, and so no sentence names."""
PACKAGES = sorted(path.parent for path in SOURCE.rglob("*/__init__.py") if path.parent != SOURCE)
FOLDERS = sorted(
    folder
    for source in (ROOT / "src", ROOT / "lab" / "src")
    for folder in {path.parent for path in source.rglob("*.py")}
)
MOST_MODULES = 15
LONG = 300


def relative(path):
    return str(path.relative_to(ROOT))


def imported(path, package="tensorlace"):
    """Dotted names of the modules of a package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (f"{package}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from [node.module] if node.module.startswith(f"{package}.") else []
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith(f"{package}."))


def test_import_contracts_are_kept():
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Contracts: {len(CONTRACTS['contracts'])} kept, 0 broken." in done.stdout


def test_no_import_is_exempt_from_the_contracts():
    kinds = {contract["type"] for contract in CONTRACTS["contracts"]}
    assert kinds == {"layers", "forbidden", "acyclic_siblings"}
    for contract in CONTRACTS["contracts"]:
        assert not contract.get("ignore_imports"), contract["name"]
    layers = next(c for c in CONTRACTS["contracts"] if c["type"] == "layers")
    assert layers["exhaustive"] is True
    assert set(layers.get("exhaustive_ignores", ())) <= {"baselines"}


@pytest.mark.parametrize("folder", FOLDERS, ids=relative)
def test_a_folder_holds_few_modules(folder):
    modules = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MOST_MODULES, sorted(modules)


@pytest.mark.parametrize("package", PACKAGES, ids=relative)
def test_a_package_says_what_it_is_for_and_holds_no_code(package):
    own = package.relative_to(SOURCE).parts[0]
    tree = ast.parse((package / "__init__.py").read_text())
    duty, blank, *sentence = (ast.get_docstring(tree) or "").split("\n")
    assert duty.endswith(".")
    assert blank == ""
    names = {name.split(".")[1] for path in package.rglob("*.py") for name in imported(path)}
    rooms = [room for room in ROOMS if room in names - COMMON - {own}]
    expected = f"Imports from: {', '.join(rooms) or 'no other room'}."
    assert " ".join(sentence) == " ".join(textwrap.wrap(expected, 100)), expected
    exported = None
    for node in tree.body[1:]:
        if isinstance(node, ast.ImportFrom):  # of what is inside
            assert f"{node.module}.".startswith(f"tensorlace.{own}."), ast.unparse(node)
        else:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            assert ast.unparse(target) == "__all__"
            exported = ast.literal_eval(node.value)
    inside = {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert exported is not None
    assert {*exported} == inside


def private(name):
    return name.startswith("_") and not name.endswith("__")


def private_reads(path):
    """Private names of other classes and modules that a file reads, as they stand in it.

    A class may read its own, and so may a module those of the classes that it defines by name.
    """
    tree = ast.parse(path.read_text())
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tensorlace"):
            yield from (f"{node.module}.{a.name}" for a in node.names if private(a.name))
        if isinstance(node, ast.Attribute) and private(node.attr):
            known = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", *own}
            if not known and ast.unparse(node) not in DOCUMENTED:
                yield ast.unparse(node)


DOCUMENTED = {"os._exit"}
"""Functions of other libraries whose documented name begins with an underscore."""

MODULES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_reads_what_is_private_elsewhere(path):
    assert [*private_reads(path)] == []


def test_private_reads_are_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from tensorlace.rows.memory import _hidden, __all__\n"
        "import os\n"
        "class Own:\n"
        "    def of(self, other):\n"
        "        return self._a, Own._b, other._c, self.other._d, other.__dict__, os._exit\n"
    )
    assert sorted(private_reads(path)) == [
        "other._c",
        "self.other._d",
        "tensorlace.rows.memory._hidden",
    ]


TAKE_A_MODEL = ("compact", "displays", "explain", "export", "model_file", "report", "serve")
"""Rooms that take fitted models, whatever has fitted them."""


@pytest.mark.parametrize("room", TAKE_A_MODEL)
def test_rooms_that_take_a_model_know_no_estimator(room):
    names = {name for path in (SOURCE / room).rglob("*.py") for name in imported(path)}
    found = {name for name in names if name.startswith("tensorlace.estimators")}
    assert found <= {"tensorlace.estimators.registry"}


def test_tests_mirror_the_rooms():
    others = {"contracts", "documents", "helpers", "data"}
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders - others <= {*ROOMS}
    assert {"sources", "columns", "rows", "solvers", "laplace", "machines"} < folders
    assert {path.name for path in TESTS.glob("*.py")} <= {"__init__.py", "conftest.py"}


def test_no_test_module_imports_another():
    modules = [*TESTS.rglob("test_*.py"), *(ROOT / "lab" / "tests").rglob("test_*.py")]
    assert len(modules) > 50
    for path in modules:
        for name in imported(path, "tests"):
            assert name.split(".")[1] == "helpers", f"{relative(path)} imports {name}"


def test_long_modules_are_named():
    """A warning only: what counts is that a file has one reason to change."""
    long = {}
    for source in (ROOT / "src", ROOT / "lab" / "src"):
        for path in source.rglob("*.py"):
            n_lines = len(path.read_text().splitlines())
            if n_lines > LONG:
                long[relative(path)] = n_lines
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for name, n_lines in long.items():
            warnings.warn(f"{name} has {n_lines} lines", stacklevel=1)
    assert max(long.values(), default=0) < 2 * LONG, long


# ---- the page about it

PAGE = (ROOT / "docs" / "architecture.md").read_text()
PICTURE = (ROOT / "docs" / "_static" / "rooms.svg").read_text()


def rows_below(heading):
    """Cells of the rows of the first table in a section of the page."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_says_the_duty_of_each_room(room):
    duty = {name: says for names, says in rows_below("The rooms") for name in names.split(", ")}
    assert f"`{room}`" in duty
    package = SOURCE / room / "__init__.py"
    if package.exists():
        first, *_ = ast.get_docstring(ast.parse(package.read_text())).split("\n")
        assert duty[f"`{room}`"] == first
    if not room.startswith("_"):
        assert f">{room}</text>" in PICTURE


def test_rooms_stand_in_the_picture_and_on_the_page_in_the_order_of_imports():
    height = {name: int(y) for y, name in re.findall(r'"name".* y="(\d+)">(\w+)<', PICTURE)}
    for layer, below in itertools.pairwise(CONTRACTS["contracts"][0]["layers"]):
        for above, under in itertools.product(layer.split(" | "), below.split(" | ")):
            if not {above[0], under[0]} & {"_"}:
                assert height[above] < height[under], f"{above} above {under}"
    listed = [room for names, _ in rows_below("The rooms") for room in re.findall(r"\w+", names)]
    assert [height[room] for room in listed if room in height] == sorted(height.values())


def found(name):
    """The object with a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize(
    ("what", "where", "line"), rows_below("Where to put what"), ids=lambda cell: cell[:30]
)
def test_where_the_page_says_things_belong_there_are_such(what, where, line):
    for path in re.findall(r"`([\w/.]+)`", where):
        folder = ROOT / path
        assert folder.exists(), path
        assert folder.is_file() or len(list(folder.glob("*.py"))) > 1, path
    names = re.findall(r"`([\w./]+)`", line)
    assert names
    for name in names:
        if name.startswith("tensorlace"):
            assert len(found(name)) > 0, name  # a registry with members
