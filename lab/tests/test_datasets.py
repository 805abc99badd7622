"""The nine sets: found in a directory, fetched from an address, kept, and refused when damaged."""

import hashlib
import threading
import zipfile
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler

import numpy as np
import pytest

from tensorlace.errors import InputError, SourceError
from tensorlace_lab import datasets
from tensorlace_lab.datasets import UCI, Origin, UciSet, load_uci
from tests.helpers.data import DIRECTORY, requires_data, uci

TABLE = np.array([[1.5, -2.0, 0.1], [3.0, 4e-3, 1 / 3], [5.0, 6.0, 0.7]])
ROWS = "\n".join(" ".join(map(repr, map(float, row))) for row in TABLE)


def known(*origins):
    return UciSet(("a", "b"), 3, hashlib.sha256(TABLE.astype("<f8").tobytes()).hexdigest(), origins)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """No data but what is fetched."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.delenv("TENSORLACE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tensorlace"


@pytest.fixture
def site(tmp_path):
    """A web server for files in a directory of its own."""
    folder = tmp_path / "site"
    folder.mkdir()
    with HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@requires_data
@pytest.mark.parametrize("name", sorted(UCI))
def test_sets_are_found_in_a_directory(name):
    X, y, columns = load_uci(name, DIRECTORY)
    X_plain, y_plain = uci(name)
    assert np.array_equal(X, X_plain)
    assert np.array_equal(y, y_plain)
    assert len(columns) == len(set(columns)) == X.shape[1]


@pytest.mark.parametrize(
    "text",
    [ROWS, ROWS.replace(" ", ",") + "\n\n", '"a b";c;d\n' + ROWS.replace(" ", " ; ")],
    ids=["blanks", "commas", "semicolons and header"],
)
def test_fetched_by_http_then_kept(text, site, cache, monkeypatch):
    folder, url = site
    (folder / "data.txt").write_text(text)
    monkeypatch.setitem(UCI, "yacht", known(Origin(url + "data.txt", 2, (0, 1))))
    X, y, columns = load_uci("yacht")
    assert np.array_equal(np.column_stack([X, y]), TABLE)
    assert columns == ("a", "b")
    assert [p.name for p in cache.iterdir()] == ["yacht.csv"]
    (folder / "data.txt").unlink()
    again, _, _ = load_uci("yacht")
    assert np.array_equal(again, X)
    (cache / "yacht.csv").write_text("a,b,y\n1,2,3\n")  # a damaged copy is not believed
    with pytest.raises(SourceError, match=r"cannot fetch yacht from 1 origins .*404.*TENSORLACE_"):
        load_uci("yacht")


def test_member_of_an_archive_and_columns_in_another_order(tmp_path, cache, monkeypatch):
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        np.savetxt(text := tmp_path / "t.csv", TABLE[:, [2, 0, 1]], delimiter=",", fmt="%.17g")
        archive.write(text, "folder/t.csv")
    absent = Origin((tmp_path / "absent").as_uri(), 2, (0, 1))
    right = Origin(path.as_uri(), 0, (1, 2), "folder/t.csv")
    monkeypatch.setitem(UCI, "wine", known(absent, right))  # the second origin is tried
    X, y, _ = load_uci("wine")
    assert np.array_equal(np.column_stack([X, y]), TABLE)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (ROWS.replace("0.7", "0.8"), "checksum"),
        (ROWS + "\n1 2 3", r"shape \(4, 3\), need \(3, 3\)"),
        ("1 2\n3", "origins"),
        ("", "origins"),
    ],
    ids=["a digit", "a row more", "ragged", "empty"],
)
def test_wrong_numbers_are_refused(text, match, tmp_path, cache, monkeypatch):
    (path := tmp_path / "data.txt").write_text(text)
    monkeypatch.setitem(UCI, "boston", known(Origin(path.as_uri(), 2, (0, 1))))
    with pytest.raises(SourceError, match=match):
        load_uci("boston")
    assert not cache.exists()


def test_directory_given_is_the_only_place(tmp_path, monkeypatch):
    monkeypatch.setitem(UCI, "power", known())
    with pytest.raises(SourceError, match=r"no power\.csv in"):
        load_uci("power", tmp_path)
    (tmp_path / "uci").mkdir()
    (path := tmp_path / "uci" / "power.csv").write_text("a,b,y\n" + ROWS.replace(" ", ","))
    assert load_uci("power", tmp_path)[0].shape == (3, 2)
    monkeypatch.setenv("TENSORLACE_DATA", str(tmp_path))
    assert load_uci("power")[0].shape == (3, 2)
    path.write_text("a,b,y\n1,2,x\n")
    with pytest.raises(SourceError, match="no number"):
        load_uci("power", tmp_path)


def test_unknown_name():
    with pytest.raises(InputError, match="no set 'iris'"):
        load_uci("iris")


def test_checksum_sees_order_and_value_not_layout():
    assert datasets.checksum(TABLE) == datasets.checksum(np.asfortranarray(TABLE))
    assert datasets.checksum(TABLE) != datasets.checksum(TABLE[::-1])
