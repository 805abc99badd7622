"""The same rows from anywhere: same bits for any range, and errors that say where."""

import itertools
import os
import pickle
import random
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tensorlace.errors import InputError, SourceError, TensorlaceError
from tensorlace.sources import (
    ArraySource,
    BlockSource,
    CsvSource,
    NpySource,
    ParquetSource,
    open_source,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, D = 1000, 3
NAMES = tuple("abc")
SRC = Path(__file__).resolve().parents[2] / "src"


def make_table(seed=0, n=N):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-300, 300, (n, D))
    return rng.standard_normal((n, D)) * scale, rng.standard_normal(n), rng.random(n)


def write_csv(path, X, y, w, *, header="note,c,w,a,y,b", end="\n", cell=repr, note="hi"):
    lines = [header]
    for (a, b, c), target, weight in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
        lines.append(",".join([note, *(cell(v) for v in (c, weight, a, target, b))]))
    Path(path).write_bytes((end.join(lines) + end).encode())
    return path


def write_parquet(path, X, y, w, rows=73, **types):
    columns = {"note": ["hi"] * len(y), "c": X[:, 2], "w": w, "a": X[:, 0], "y": y, "b": X[:, 1]}
    arrays = {k: pa.array(v, type=types.get(k)) for k, v in columns.items()}
    pq.write_table(pa.table(arrays), path, row_group_size=rows)
    return path


def odd_blocks(X, y, w, sizes=(1, 97, 0, 250, 3)):
    def blocks():
        start, size = 0, itertools.cycle(sizes)
        while start < len(y):
            stop = start + next(size)
            yield np.asfortranarray(X[start:stop]), y[start:stop, None], w[start:stop]
            start = stop

    return blocks


def in_parts(write, directory, X, y, w):
    directory.mkdir()
    names = sorted(f"part-{k}" for k in range(11))
    cuts = [0, 1, 1, 200, 333, 400, 555, 600, 777, 900, 999, len(y)]
    for name, start, stop in zip(names, cuts[:-1], cuts[1:], strict=True):
        write(directory / name, X[start:stop], y[start:stop], w[start:stop])
    (directory / "_SUCCESS").write_text("")
    (directory / "_metadata.csv").write_text("junk")
    return directory


def csv_part(path, *table):
    return write_csv(path.with_suffix(".csv"), *table, header="note,c,w,a,y,b", end="\r\n")


def parquet_part(path, *table):
    return write_parquet(path.with_suffix(".pq"), *table, rows=29)


SOURCES = (
    *("array", "npy", "csv", "csv directory", "csv glob", "csv small parts", "csv odd"),
    *("parquet", "parquet one group", "parquet directory", "parquet glob", "parquet list"),
    *("blocks", "counted blocks"),
)


def make_source(kind, directory, monkeypatch=None):
    X, y, w = table = make_table()
    disk = {"target": "y", "features": NAMES, "weight": "w"}
    if kind == "array":
        return ArraySource(np.asfortranarray(X), y, w, NAMES)
    if kind == "npy":
        for name, values in zip("Xyw", (np.asfortranarray(X), y, w), strict=True):
            np.save(directory / f"{name}.npy", values)
        return NpySource(*(directory / f"{name}.npy" for name in "Xyw"), names=NAMES)
    if kind == "csv":
        return CsvSource(write_csv(directory / "t.csv", *table), **disk)
    if kind == "csv small parts":
        if monkeypatch is not None:
            monkeypatch.setattr("tensorlace.sources.files.csv_index.PART_BYTES", 200)
        path = write_csv(directory / "t.csv", *table, end="\r\n", note='"a ""b"",\r\n\nc"')
        return CsvSource(path, **disk)
    if kind == "csv odd":  # byte order mark, empty lines, quotes, no line end at the end
        path = write_csv(directory / "t.csv", *table, end="\n\r\n\n", cell=lambda v: f'"{v!r}"')
        path.write_bytes(b"\xef\xbb\xbf\n" + path.read_bytes().rstrip())
        return CsvSource(path, **disk)
    if kind == "parquet":
        return ParquetSource(write_parquet(directory / "t.parquet", *table), **disk)
    if kind == "parquet one group":
        return open_source(write_parquet(directory / "t.parquet", *table, rows=N), **disk)
    if kind == "blocks":
        return BlockSource(odd_blocks(*table), NAMES)
    if kind == "counted blocks":
        return BlockSource(odd_blocks(*table), NAMES, n_rows=N)
    form, shape = kind.split()
    suffix, write = (".csv", csv_part) if form == "csv" else (".pq", parquet_part)
    where = in_parts(write, directory / "parts", *table)
    if shape == "glob":
        return open_source(str(where / f"part-*{suffix}"), **disk)
    if shape == "list":
        files = list(where.glob(f"part*{suffix}"))
        random.Random(0).shuffle(files)
        return open_source(files, **disk)
    return open_source(where, **disk) if form == "parquet" else CsvSource(where, **disk)


@pytest.fixture(params=SOURCES)
def source(request, tmp_path, monkeypatch):
    return make_source(request.param, tmp_path, monkeypatch)


def same_bits(chunk, start, stop):
    X, y, w = make_table()
    assert chunk.first_row == start
    for got, want in zip((chunk.X, chunk.y, chunk.weight), (X, y, w), strict=True):
        assert got.dtype == np.float64
        assert got.flags.c_contiguous
        assert got.shape == want[start:stop].shape
        assert got.tobytes() == want[start:stop].tobytes()


def test_any_range_has_the_same_bits(source):
    assert (source.names, source.n_rows) == (NAMES, N)
    rng = np.random.default_rng(1)
    ranges = [(0, N), (0, 0), (N, N), (N - 1, N), (0, 1), (72, 74), (N + 3, N + 9), (990, 2 * N)]
    for start, stop in [*ranges, *np.sort(rng.integers(0, N, (20, 2))).tolist()]:
        same_bits(source.read(start, stop), min(start, N), min(stop, N))
    source.verify()


@pytest.mark.parametrize("size", [1, 7, 73, 256, N, 10 * N])
def test_chunks_are_all_rows_in_order(source, size):
    start = 0
    for chunk in source.chunks(size):
        same_bits(chunk, start, min(start + size, N))
        start += chunk.n_rows
    assert start == N


def test_chunks_cannot_be_written_to(source):
    with pytest.raises(ValueError, match="read-only"):
        source.read(0, 5).X[0, 0] = 1.0


def test_no_such_range_or_size(source):
    for start, stop in ((-1, 3), (4, 3)):
        with pytest.raises(InputError, match="range"):
            source.read(start, stop)
    with pytest.raises(InputError, match="size >= 1"):
        source.chunks(0)


def test_threads_read_the_same_bits(source):
    failures = []

    def work(seed):
        try:
            for start in np.random.default_rng(seed).integers(0, N, 15).tolist():
                same_bits(source.read(start, start + 90), start, min(start + 90, N))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def run_python(code, data=b""):
    path = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=data,
        capture_output=True,
        check=False,
        cwd="/",
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_another_process_reads_the_same_bits(tmp_path):
    kinds = [kind for kind in SOURCES if "blocks" not in kind]
    sources = []
    for kind in kinds:
        (tmp_path / kind).mkdir()
        sources.append(make_source(kind, tmp_path / kind))
        sources[-1].read(0, N)
        assert kind == "array" or len(pickle.dumps(sources[-1])) < 8000  # no rows inside
    code = """if True:
        import pickle, sys
        for s in pickle.load(sys.stdin.buffer):
            s.verify()
            c = s.read(333, 777)
            sys.stdout.buffer.write(c.X.tobytes() + c.y.tobytes() + c.weight.tobytes())
    """
    want = b"".join(v[333:777].tobytes() for v in make_table())
    assert run_python(code, pickle.dumps(sources)) == want * len(kinds)


def test_without_features_and_weight(tmp_path):
    X, y, _ = make_table()
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"p": X[:, 0], "y": y, "q": X[:, 1], "__index_level_0__": y}), path)
    source = open_source(path, "y")
    chunk = source.read(5, 8)
    assert source.names == ("p", "q")
    assert chunk.weight is None
    assert chunk.X.tobytes() == np.ascontiguousarray(X[5:8, :2]).tobytes()


def test_other_number_types(tmp_path):
    columns = {
        "f": pa.array([0.1, 2.5], pa.float32()),
        "i": pa.array([2**53 + 1, -3], pa.int64()),
        "b": pa.array([True, False]),
        "d": pa.array(["0.10", "2.30"]).cast(pa.decimal128(9, 2)),
        "y": pa.array([1, 2], pa.uint8()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.pq")
    chunk = open_source(tmp_path / "t.pq", "y").read(0, 2)
    want = [[float(np.float32(0.1)), float(2**53 + 1), 1.0, 0.1], [2.5, -3.0, 0.0, 2.3]]
    np.testing.assert_array_equal(chunk.X, want)
    np.save(tmp_path / "X.npy", np.array(want, np.float32))
    np.save(tmp_path / "y.npy", np.array([1.0, 2.0], np.float32))
    np.testing.assert_array_equal(
        NpySource(tmp_path / "X.npy", tmp_path / "y.npy").read(0, 2).X, np.float32(want)
    )


def test_csv_numbers_have_the_bits_of_float(tmp_path):
    rng = random.Random(0)
    texts = [
        "1e-324",
        "4.9e-324",
        "-0.0",
        "+7",
        " 8 ",
        "1E5",
        ".5",
        "5.",
        "9007199254740993",
        "1e23",
    ]
    for _ in range(5000):
        digits = "".join(rng.choices("0123456789", k=rng.randint(1, 40)))
        texts.append(f"{digits[:3]}.{digits[3:]}e{rng.randint(-330, 290)}")
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{t},0\n" for t in texts))
    X = CsvSource(path, "y").read(0, len(texts)).X[:, 0]
    assert X.tobytes() == np.array([float(t) for t in texts]).tobytes()


def test_reads_of_small_ranges_decode_a_row_group_once(tmp_path, monkeypatch):
    source = make_source("parquet", tmp_path)
    decoded, decode = [], ParquetSource._decode
    monkeypatch.setattr(
        ParquetSource, "_decode", lambda s, f, k, n: decoded.append(k) or decode(s, f, k, n)
    )
    source.read(146, 219)
    assert decoded == [2]  # nothing but the row group asked for
    list(source.chunks(10))
    assert sorted(decoded) == list(range(14))


def test_the_segments_kept_are_few(tmp_path, monkeypatch):
    monkeypatch.setattr("tensorlace.sources.files.segments.CACHE_BYTES", 1)
    source = make_source("parquet", tmp_path)
    list(source.chunks(10))
    assert len(source._recent._kept) == 2


# Faults: one line that names file, row and column.


def refused(call, *parts):
    start = time.perf_counter()
    with pytest.raises(SourceError) as caught:
        call()
    assert time.perf_counter() - start < 60
    text = str(caught.value)
    assert isinstance(caught.value, TensorlaceError)
    assert isinstance(caught.value, OSError)
    assert "\n" not in text
    for part in parts:
        assert part in text, text
    return text


def use_all(source):
    return list(source.chunks(64))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", ["b", "y", "w"])
@pytest.mark.parametrize("kind", ["array", "npy", "csv", "parquet", "blocks"])
def test_a_value_that_is_not_finite(kind, column, value, tmp_path):
    X, y, w = make_table()
    {"b": X[:, 1], "y": y, "w": w}[column][700] = value
    disk = {"target": "y", "weight": "w", "features": NAMES}
    if kind == "csv":
        for name, rows in (("1.csv", slice(0, 600)), ("2.csv", slice(600, N))):
            write_csv(tmp_path / name, X[rows], y[rows], w[rows])
        source, where = CsvSource(tmp_path, **disk), "2.csv, row 100: "
    elif kind == "parquet":
        for name, rows in (("1.pq", slice(0, 600)), ("2.pq", slice(600, N))):
            write_parquet(tmp_path / name, X[rows], y[rows], w[rows])
        source, where = ParquetSource(tmp_path, **disk), "2.pq, row group 1, row 100: "
    elif kind == "npy":
        for name, values in zip("Xyw", (X, y, w), strict=True):
            np.save(tmp_path / f"{name}.npy", values)
        source = NpySource(*(tmp_path / f"{name}.npy" for name in "Xyw"), names=NAMES)
        where = "row 700"
    elif kind == "array":
        source, where = ArraySource(X, y, w, NAMES), "row 700"
    else:
        source = BlockSource(odd_blocks(X, y, w), NAMES)
        where = "block 9, row 1: "
    name = {"b": "'b'", "y": "'y", "w": "'w"}[column]
    word = "missing" if np.isnan(value) else "infinite"
    refused(lambda: use_all(source), where, name, word, "row 700 of the table")
    if kind != "blocks":
        source.read(0, 700)
        refused(lambda: source.read(700, 701), where, name)


def test_missing_cells_and_nulls(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,2\n,3\n")
    refused(lambda: use_all(CsvSource(path, "y")), "t.csv, row 1", "'a'", "missing")
    for kind, values in (("i", [1, None]), ("f", [1.5, None]), ("b", [True, None])):
        pq.write_table(pa.table({kind: values, "y": [1, 2]}), tmp_path / "t.pq")
        source = ParquetSource(tmp_path / "t.pq", "y")
        refused(lambda s=source: use_all(s), "row group 0, row 1", f"{kind!r}", "missing")


def test_huge_but_finite_values_are_fine():
    X = np.full((9, 2), 1.7e308)
    assert ArraySource(X, X[:, 0]).read(0, 9).n_rows == 9


def test_negative_weight():
    refused(lambda: ArraySource(np.ones((3, 1)), np.ones(3), [1, 1, -2]).read(0, 3), "-2", "row 2")


@pytest.mark.parametrize("form", ["csv", "pq"])
def test_a_column_is_missing_in_one_file(form, tmp_path):
    table = make_table(n=20)
    where = tmp_path / f"2.{form}"
    if form == "csv":
        write_csv(tmp_path / "1.csv", *table, header="note,c,weight,speed,y,b")
        write_csv(where, *table, header="note,c,weight,sped,y,b")
    else:
        for name, column in ((tmp_path / "1.pq", "speed"), (where, "sped")):
            pq.write_table(pa.table({column: table[1], "weight": table[1], "y": table[1]}), name)
    refused(
        lambda: open_source(tmp_path, "y", features=["speed"]),
        *(str(where), "no column 'speed'", "did you mean 'sped'?"),
    )
    refused(lambda: open_source(where, "zzz"), "no column 'zzz'", "it has", "'sped'")
    refused(lambda: open_source(where, "y", weight="wait"), "'wait'")


def test_column_named_twice(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,y\n1,2,3\n")
    refused(lambda: CsvSource(tmp_path / "t.csv", "y", ["a"]), "2 columns are named 'a'")
    for features in (["a", "y"], ["a", "a"], "a", []):
        with pytest.raises(InputError, match="column"):
            CsvSource(tmp_path / "t.csv", "y", features)


def test_column_that_is_not_numeric(tmp_path):
    table = make_table(n=20)
    path = write_parquet(tmp_path / "t.pq", *table)
    refused(lambda: open_source(path, "y"), str(path), "'note'", "string")
    path = write_csv(tmp_path / "t.csv", *table)
    refused(lambda: open_source(path, "y"), str(path), "row 0", "'note'", "'hi'")


@pytest.mark.parametrize("cut", [0, 3, 4, 11, 100, 0.5, -9, -8, -1])
def test_truncated_parquet(cut, tmp_path):
    path = write_parquet(tmp_path / "t.pq", *make_table())
    data = path.read_bytes()
    path.write_bytes(data[: int(cut * len(data)) if isinstance(cut, float) else cut])
    refused(lambda: ParquetSource(path, "y", NAMES), str(path), "not a whole Parquet file")


def test_damaged_parquet_pages(tmp_path):
    X, y, _ = make_table()
    path = tmp_path / "t.pq"
    pq.write_table(pa.table({"a": X[:, 0], "y": y}), path, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[2000] ^= 16
    path.write_bytes(data)
    refused(lambda: use_all(ParquetSource(path, "y")), str(path), "row group 0, column 'a'")


def test_random_damage_never_gives_another_error(tmp_path):
    data = write_parquet(tmp_path / "t.pq", *make_table(n=200)).read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        bad = bytearray(data)
        bad[rng.randrange(len(bad) // 2, len(bad))] = rng.randrange(256)
        (tmp_path / "t.pq").write_bytes(bad)
        try:
            use_all(ParquetSource(tmp_path / "t.pq", "y", NAMES, "w"))
        except SourceError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_missing_files_and_no_rows(tmp_path):
    for path in ("no.csv", "no.pq", "*.csv", "no.txt"):
        refused(lambda p=path: open_source(tmp_path / p, "y"), str(tmp_path / path))
    refused(lambda: open_source(tmp_path, "y"), str(tmp_path), "directory without")
    refused(lambda: open_source([], "y"), "empty")
    np.save(tmp_path / "X.npy", np.empty((0, 2)))
    np.save(tmp_path / "y.npy", np.empty(0))
    refused(lambda: NpySource(tmp_path / "X.npy", tmp_path / "y.npy"), "X.npy", "no rows")
    refused(lambda: NpySource(tmp_path / "no.npy", tmp_path / "y.npy"), "no.npy")
    pq.write_table(pa.table({"a": [1.0], "y": [1.0]}).slice(1), tmp_path / "t.pq")
    refused(lambda: open_source(tmp_path / "t.pq", "y"), "t.pq", "no rows")
    for text in ("a,y\n", "a,y", "", "\n\n"):
        (tmp_path / "t.csv").write_text(text)
        refused(lambda: open_source(tmp_path / "t.csv", "y"), "t.csv", "no rows")
    refused(lambda: open_source(tmp_path, "y"), "'.csv', '.pq'")
    refused(lambda: ArraySource(np.empty((0, 2)), []), "no rows")
    refused(lambda: BlockSource(list), "no rows")


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_a_file_that_changes_is_noticed(kind, tmp_path):
    source = make_source(kind, tmp_path)
    path = Path(source.files[0].path)
    data, status = path.read_bytes(), path.stat()

    def put(content, time_ns):
        path.write_bytes(content)
        os.utime(path, ns=(status.st_atime_ns, time_ns))

    put(data + b" ", status.st_mtime_ns)
    refused(source.verify, str(path), "changed", "size")
    refused(lambda: source.read(0, 5), str(path), "changed")
    put(data, status.st_mtime_ns + 1)
    refused(source.verify, str(path), "time of change")
    refused(lambda: source.read(0, 5), "changed")
    put(data[:-3] + b"123", status.st_mtime_ns)
    refused(source.verify, str(path), "content")
    put(data, status.st_mtime_ns)
    source.verify()
    same_bits(source.read(0, 5), 0, 5)
    path.unlink()
    refused(source.verify, str(path), "No such file")
    if kind != "npy":
        same_bits(source.read(0, 5), 0, 5)  # still remembered
    refused(lambda: pickle.loads(pickle.dumps(source)).read(0, 5), str(path), "No such file")


CSV_FAULTS = {
    "ragged": (b"a,y\n1,2\n3\n", "row 1: 1 fields where the header has 2"),
    "decimal comma": (b"a,y\n1,2\n3,5,4\n", "row 1: 3 fields where the header has 2 (a decimal"),
    "quoted comma": (b'a,y\n1,2\n"3,5",4\n', "row 1: column 'a' is not numeric, it has '3,5': wri"),
    "semicolons": (b"a;y\n1,5;2,5\n", "header: fields are separated by semicolons"),
    "tabs": (b"a\ty\n1\t2\n", "header: fields are separated by tabs"),
    "NUL": (b"a,y\n1,2\n\n3,\x004\n", "row 1: NUL byte"),
    "NUL in header": (b"a,\x00y\n1,2\n", "header: NUL byte"),
    "UTF-16": ("a,y\n1,2\n".encode("utf-16"), "header: the text is UTF-16"),
    "UTF-16 bare": ("a,y\n1,2\n".encode("utf-16-le"), "header: NUL byte: the text is UTF-16"),
    "Latin-1": ("é,y\n1,2\n".encode("latin-1"), "header: not UTF-8"),
    "returns": (b"a,y\r1,2\r", "header: carriage return"),
    "return": (b"a,y\n1,2\n3,4\r5,6\n", "row 1: carriage return"),
    "text": (b"a,y\n1,2\n3,4\n5,red\n", "row 2: column 'y' is not numeric, it has 'red'"),
    "open quote": (b'a,y\n1,2\n"3,4\n5,6\n', "a quote is left open in the row at byte 8"),
    "underscore": (b"a,y\n1,2\n1_0,4\n", "1_0"),
    "lone quotes": (b'a,y,n\n1,2,5" x\n3,4,6" x\n', "a quote stands alone"),
}


@pytest.mark.parametrize("fault", CSV_FAULTS)
def test_csv_faults(fault, tmp_path):
    data, message = CSV_FAULTS[fault]
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    refused(lambda: use_all(CsvSource(path, "y", ["a"])), str(path), message)


@pytest.mark.parametrize("row", [0, 1, 500, 999])
def test_csv_faults_in_later_parts(row, tmp_path, monkeypatch):
    monkeypatch.setattr("tensorlace.sources.files.csv_index.PART_BYTES", 300)
    path = write_csv(tmp_path / "t.csv", *make_table(), end="\r\n")
    lines = path.read_bytes().split(b"\r\n")
    for change, message in ((b",7", "fields"), (b"x", "not numeric"), (b"\0", "NUL")):
        path.write_bytes(
            b"\r\n".join([*lines[: row + 1], lines[row + 1] + change, *lines[row + 2 :]])
        )
        refused(lambda: use_all(CsvSource(path, "y", NAMES, "w")), f"t.csv, row {row}: ", message)


def test_npy_faults(tmp_path):
    good = tmp_path / "y.npy"
    np.save(good, np.ones(5))
    for name, values, message in (
        ("i", np.ones((5, 2), int), "int64"),
        ("o", np.array([[object()]] * 5), "not a whole .npy file"),
        ("n", np.ones((4, 2)), "5,) does not fit the 4 rows"),
        ("v", np.ones(5), "no table"),
    ):
        np.save(tmp_path / f"{name}.npy", values)
        refused(lambda n=name: NpySource(tmp_path / f"{n}.npy", good), message)
    np.save(tmp_path / "X.npy", np.ones((5, 2)))
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:-1])
    refused(lambda: NpySource(tmp_path / "X.npy", good), "X.npy", "not a whole .npy file")


def test_blocks_that_differ_between_passes():
    once = iter([(np.ones((3, 2)), np.ones(3))])
    refused(lambda: use_all(BlockSource(lambda: once)), "0 rows where 3 were expected", "fresh")
    sizes = iter([3, 4, 2])
    source = BlockSource(lambda: [(np.ones((n := next(sizes), 2)), np.ones(n))])
    refused(lambda: use_all(source), "over 3 rows where 3 were")
    refused(lambda: use_all(source), "2 rows where 3 were")
    fine, wide = (np.ones((3, 2)), np.ones(3)), (np.ones((3, 4)), np.ones(3))
    for block, message in (
        (wide, "block 1: 4 columns"),
        ((*fine, np.ones(3)), "block 1: 2 columns with weights"),
        ((np.ones((3, 2)), np.ones(4)), "block 1: y has shape (4,)"),
        (np.ones(3), "block 1: a ndarray"),
    ):
        refused(lambda b=block: use_all(BlockSource(lambda: [fine, b])), message)


def test_block_with_a_fault_is_named():
    X, y = np.ones((4, 1)), np.ones(4)
    bad = X.copy()
    bad[2] = np.inf
    source = BlockSource(lambda: [(X, y), (bad, y)])
    refused(lambda: use_all(source), "block 1, row 2", "'column 0'", "row 6 of the table")


def test_arrays_that_do_not_fit():
    for X, y in (
        ([[1.0]], [1.0, 2.0]),
        ([1.0], [1.0]),
        ([["a"]], [1.0]),
        (np.array([["2020-01-01"]], "M8[D]"), [1.0]),
        ([[1j]], [1.0]),
        ([[1.0]], None),
    ):
        with pytest.raises(InputError):
            ArraySource(X, y)
    with pytest.raises(InputError, match="2 names for 1 columns"):
        ArraySource([[1.0]], [1.0], names=["a", "b"])


def test_frames_bring_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"p": [1, 2], "q": [0.5, 1.5]})
    assert ArraySource(frame, frame["q"]).names == ("p", "q")


def test_without_pyarrow(tmp_path, monkeypatch):
    csv, parquet = make_source("csv", tmp_path), make_source("parquet", tmp_path)
    for name in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    for source in (csv, parquet):
        path = source.files[0].path
        refused(lambda p=path: open_source(p, "y"), "pip install tensorlace[disk]")


def test_pyarrow_is_imported_only_when_needed():
    run_python(
        "import sys, tensorlace.sources as s; s.ArraySource([[1.0]], [1.0]).read(0, 1); "
        "assert not {'pyarrow.csv', 'pyarrow.parquet'} & set(sys.modules)"  # pandas loads the rest
    )


def test_memory_does_not_grow_with_the_file(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "t.parquet"
    columns = {name: rng.standard_normal(1_600_000) for name in "abcy"}
    pq.write_table(pa.table(columns), path, row_group_size=100_000, compression="none")
    del columns
    assert path.stat().st_size > 50e6
    source = ParquetSource(path, "y")
    source._recent._budget = 8 << 20
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    rows = sum(chunk.n_rows for chunk in source.chunks(30_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == 1_600_000
    assert peak < 16e6
    assert pa.total_allocated_bytes() - before < 4e6
