"""The container: another library reads it, and whatever is damaged or hostile is refused."""

import hashlib
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from tensorlace import ModelFileError, load
from tensorlace.model_file import files as model_file
from tensorlace.model_file.container import unseal
from tests.helpers.model_files import refuses


def test_another_library_reads_the_arrays(model, data, tmp_path):
    path = tmp_path / "model.tlace"
    path.write_bytes(data)
    with safe_open(path, "np") as file:
        assert file.metadata()["format"] == "tensorlace"
        core = file.get_tensor("machines_.0.fit.cores.0")
        digest = file.get_tensor("sha256")
    assert np.array_equal(core, model.machines_[0].fit.cores[0])
    assert digest.tobytes() == hashlib.sha256(data[:-32]).digest()


def test_every_truncation_and_trailing_bytes(data):
    for size in range(len(data)):
        refuses(data[:size])
    for more in (b"\0", b" ", b"\n", data):
        refuses(data + more)


def test_every_single_bit(data):
    assert len(data) < 8000
    changed = bytearray(data)
    for place in range(len(data)):
        for bit in range(8):
            changed[place] ^= 1 << bit
            try:
                unseal(bytes(changed), model_file.VERSION, "file")
            except ModelFileError:
                pass
            else:
                raise AssertionError(f"bit {bit} of byte {place} is not covered")
            changed[place] ^= 1 << bit
    assert bytes(changed) == data


def test_a_pickle_in_disguise(tmp_path, model):
    canary = tmp_path / "canary"

    class Bad:
        def __reduce__(self):
            return (os.mkdir, (str(canary),))

    path = tmp_path / "model.tlace"
    for content in (pickle.dumps(Bad()), pickle.dumps(model)):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a tensorlace model file"):
            load(path)
    assert not canary.exists()


def test_no_way_to_run_code_is_imported():
    modules = sorted(Path(model_file.__file__).parent.glob("*.py"))
    assert {"files", "container", "codec", "schema"} <= {path.stem for path in modules}
    for path in modules:
        text = path.read_text()
        for word in ("import pickle", "pickle.load", "eval(", "exec(", "importlib", "__import__"):
            assert word not in text, path.name


def raw(header, body=b"", length=None):
    text = (
        header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    )
    head = (len(text) if length is None else length).to_bytes(8, "little") + text + body
    return head + hashlib.sha256(head).digest()


def header_of(data):
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size : -32]


def entry(dtype, shape, start, stop):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda h: h["__metadata__"].update(version="2"),
            "format version 2, this tensorlace reads",
        ),
        (lambda h: h["__metadata__"].update(version="1" * 999), "format version 1"),
        (lambda h: h["__metadata__"].update(format="other"), "not a tensorlace"),
        (lambda h: h["__metadata__"].update(model=3), "something else than text"),
        (lambda h: h["__metadata__"].update(more="x"), "unknown or missing"),
        (lambda h: h["__metadata__"].pop("model"), "unknown or missing"),
        (lambda h: h["__metadata__"].update(model="[1]"), "no JSON object"),
        (lambda h: h["__metadata__"].update(model='{"a": 1, "a": 2}'), "twice"),
        (lambda h: h["__metadata__"].update(model='{"a": NaN}'), "NaN is no finite"),
        (lambda h: h["__metadata__"].update(model='{"a": -Infinity}'), "Infinity is no finite"),
        (lambda h: h["__metadata__"].update(model='{"a": 1e999}'), "1e999 is no finite"),
        (lambda h: h["__metadata__"].update(model='{"a": ' + "9" * 5000 + "}"), "cannot be read"),
        (lambda h: h["__metadata__"].update(model="[" * 10**6), "nested too deeply"),
        (lambda h: h["__metadata__"].update(model='{"a":' * 10**5), "nested too deeply"),
        (lambda h: h.pop("sha256"), "not the rest of the file"),
        (lambda h: h.update(more=entry("F64", [10**18], 0, 8 * 10**18)), "not where its size"),
        (lambda h: h.update(more=entry("F64", [2**62, 4], 0, 0)), "not where its size"),
        (lambda h: h.update(more=entry("F64", [-1], 0, 0)), "no valid dtype or shape"),
        (lambda h: h.update(more=entry("F64", [True], 0, 8)), "no valid dtype or shape"),
        (lambda h: h.update(more=entry("F64", [0] * 99, 0, 0)), "no valid dtype or shape"),
        (lambda h: h.update(more=entry("O", [1], 0, 8)), "no valid dtype or shape"),
        (lambda h: h.update(more=5), "unknown or missing entries"),
        (lambda h: h["sha256"].update(data_offsets=[0, 32]), "not where its size"),
        (lambda h: h["sha256"].update(more=1), "unknown or missing entries"),
    ],
)
def test_hostile_headers(data, change, match):
    header, body = header_of(data)
    change(header)
    refuses(raw(header, body), match)


def test_other_hostile_headers(data):
    header, body = header_of(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    refuses(raw(text, body, length=2**63), "longer than the file")
    refuses(raw(text, body, length=len(text) - 9), "cannot be read")
    refuses(raw(text + b"}", body), "cannot be read")
    refuses(raw(text.replace(b'"sha256"', b'"weights_"'), body), "twice")
    refuses(raw(text, body + b"\0"), "not where its size|not the rest")
    refuses(raw(b"{}"), "not a tensorlace")
    refuses(b"", "not a tensorlace")
    empty = {"__metadata__": header["__metadata__"], "x": entry("F64", [0, 2**62, 2**62], 0, 0)}
    refuses(raw(empty), "no valid dtype or shape")
    flags = {"__metadata__": header["__metadata__"], "x": entry("BOOL", [1], 0, 1)}
    refuses(raw(flags, b"\2"), "neither true nor false")
