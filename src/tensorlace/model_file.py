"""Model files: one safe file for a fitted model, without pickle.

A ``.tlace`` file is a sealed safetensors file, see `tensorlace.sealed`, so that it is read whole or
not at all. Its ``model`` is JSON: class, arguments, fitted attributes, facts about the fit, notes.
Loading looks classes up in `tensorlace.records` and runs nothing that a file could name.
"""

import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorlace.checkpoints import write_atomically
from tensorlace.codec import Decoder, Encoder
from tensorlace.errors import ModelFileError
from tensorlace.records import ATTRIBUTES, CLASSES, ESTIMATORS, OPTIONAL, check_model
from tensorlace.sealed import Arrays, seal, strict_json, unseal

__all__ = ["VERSION", "describe", "load", "save"]

VERSION = 1
"""Of the format. A file of another version is refused."""

Note = str | int | float | bool | None


def save(
    model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Note] | None = None
) -> None:
    """Write a fitted model to one file, all or nothing.

    The file is written beside ``path`` and then takes its place: whoever looks finds the old file
    or the new one, whole. It holds the arguments and everything `fit` learned, to the bit. That
    includes up to 4096 training rows for explanations, knots of quantiles and names of categories.

    Parameters
    ----------
    model : TNKMRegressor
        Fitted.
    path : path
        By custom ``*.tlace``.
    notes : mapping, optional
        Text, numbers or booleans to keep with the model, such as when it was fitted or how well it
        did; `describe` gives them back.

    Raises
    ------
    ModelFileError
        If the model is not fitted or has an attribute that files do not know, and if the file
        cannot be written; an earlier file is then left as it was.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from tensorlace import TNKMRegressor, load, save
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> model = TNKMRegressor(rank=1, n_basis=3).fit(X, X.sum(axis=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.tlace", notes={"fitted on": "2026-02-28"})
    ...     same = load(f"{folder}/model.tlace")
    >>> bool(np.all(same.predict(X) == model.predict(X)))
    True
    """
    data = _to_bytes(model, notes or {})
    _from_bytes(data, "the model")  # what cannot be read is not written
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        write_atomically(target, data)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror or error}") from error


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote, the same to the bit.

    Raises
    ------
    ModelFileError
        For anything but a whole model file of this version: a file that cannot be read, is cut
        short, has a single bit changed, or names what is not known. Nothing of it is ever run.
    """
    return _from_bytes(_read(path), str(path))


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says of itself, as plain data.

    Returns
    -------
    dict
        ``class``; ``about`` the fit: version of tensorlace, rows, columns, log evidence, noise;
        ``notes``; ``version`` of the format; ``bytes``; shapes of all ``arrays`` by key.

    Raises
    ------
    ModelFileError
        If the file is not whole.
    """
    data = _read(path)
    content, arrays = _open(data, str(path))
    sizes = {key: list(array.shape) for key, array in arrays.items()}
    about = {key: content[key] for key in ("class", "about", "notes")}
    return {**about, "version": VERSION, "bytes": len(data), "arrays": sizes}


def _about(model: Any) -> dict[str, Any]:
    """Facts for people; `load` does not need them."""
    from importlib.metadata import version

    return {
        "tensorlace": version("tensorlace"),
        "n_rows": model.n_rows_,
        "log_evidence": model.log_evidence_,
        "noise_std": model.noise_precision_**-0.5,
        "columns": [[name, repr(kind)] for name, kind in model.kinds_.items()],
    }


def _to_bytes(model: Any, notes: Mapping[str, Note]) -> bytes:
    """A whole file."""
    name = type(model).__name__
    if ESTIMATORS.get(name) is not type(model):
        raise ModelFileError(f"a {name} cannot be saved: give a fitted {', '.join(ESTIMATORS)}")
    params = model.get_params(deep=False)
    state = {key: value for key, value in vars(model).items() if key not in params}
    if "machines_" not in state:
        raise ModelFileError(f"this {name} is not fitted: call fit before saving it")
    unknown = sorted(state.keys() - ATTRIBUTES.keys())
    if unknown:
        raise ModelFileError(
            f"attribute {unknown[0]!r} ({type(state[unknown[0]]).__name__}) of {name} is not known "
            f"to model files: delete it, or add it to tensorlace.records"
        )
    for key, note in notes.items():
        if not (isinstance(key, str) and isinstance(note, str | int | float | bool | None)):
            raise ModelFileError(f"notes[{key!r}] is {note!r:.80}: give text, numbers or booleans")
        if isinstance(note, float) and not math.isfinite(note):
            raise ModelFileError(f"notes[{key!r}] is {note}: give a finite number or text")
    encoder = Encoder(CLASSES)
    content = {
        "class": name,
        "params": {key: encoder.encode(value, key) for key, value in sorted(params.items())},
        "state": {key: encoder.encode(value, key) for key, value in sorted(state.items())},
        "about": _about(model),
        "notes": dict(notes),
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return seal(text, VERSION, encoder.arrays)


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ModelFileError(f"{path} is not a file")
            return file.read()
    except ModelFileError:
        raise
    except (OSError, ValueError) as error:  # a path can hold a null character
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{path} cannot be read: {reason}") from error


def _open(data: bytes, name: str) -> tuple[dict[str, Any], Arrays]:
    """Content and arrays of a whole file."""
    text, arrays = unseal(data, VERSION, name)
    content = strict_json(text.encode("utf-8", "surrogatepass"), name)
    kinds = {"class": str, "params": dict, "state": dict, "about": dict, "notes": dict}
    if {key: type(value) for key, value in content.items()} != kinds:
        raise ModelFileError(f"{name}: the model has unknown or missing entries")
    return content, arrays


def _from_bytes(data: bytes, name: str) -> Any:
    """Model in a whole file."""
    content, arrays = _open(data, name)
    try:
        return _model(content, Decoder(CLASSES, arrays))
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{name}: the model is nested too deeply") from error


def _model(content: dict[str, Any], decoder: Decoder) -> Any:
    cls = ESTIMATORS.get(content["class"])
    if cls is None:
        raise ModelFileError(f"{content['class'][:80]!r} is no estimator of tensorlace")
    model = cls()
    params, state = content["params"], content["state"]
    for given, known, optional in (
        (params, model.get_params(deep=False), frozenset()),
        (state, ATTRIBUTES, OPTIONAL),
    ):
        wrong = (given.keys() ^ known.keys()) - (optional - given.keys())
        if wrong:
            raise ModelFileError(f"{', '.join(sorted(wrong))[:200]}: unknown or missing")
    model.set_params(**{key: decoder.decode(node, key) for key, node in params.items()})
    for key, node in state.items():
        setattr(model, key, decoder.decode(node, key))
    if decoder.unused():
        raise ModelFileError(f"array {decoder.unused()[0][:80]!r} belongs to nothing")
    try:
        model._validate_params()
    except (ValueError, TypeError) as error:
        raise ModelFileError(str(error)) from error
    check_model(model)
    return model
