"""Model files: one safe file for a fitted model, without pickle.

A ``.tlace`` file is a sealed safetensors file, see `tensorlace.model_file.container`, so that it is
read whole or not at all. Its ``model`` is JSON: class, arguments, fitted attributes, facts about
the fit, notes. Loading looks classes up in `tensorlace.model_file.schema` and runs nothing that a
file could name.
"""

import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorlace._atomic import write_atomically
from tensorlace.errors import ModelFileError
from tensorlace.estimators.explain_mixin import Explains
from tensorlace.model_file.about import facts
from tensorlace.model_file.codec import Decoder, Encoder
from tensorlace.model_file.container import Arrays, seal, strict_json, unseal
from tensorlace.model_file.schema import (
    ESTIMATORS,
    LATER_PARAMS,
    OPTIONAL,
    attributes,
    check_model,
    estimator_class,
    known_classes,
)

__all__ = ["VERSION", "describe", "load", "save"]

VERSION = 1
"""Of the format. A file of another version is refused."""

Note = str | int | float | bool | None

_INNER = "best_estimator_"


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Note] | None = None,
    background: bool = True,
) -> None:
    """Write a fitted model to one file, all or nothing.

    The file is written beside ``path`` and then takes its place: whoever looks finds the old file
    or the new one, whole. It holds the arguments and everything `fit` learned, to the bit: also the
    training rows, 4096 at most, that explanations average over. Targets are not in it.

    Parameters
    ----------
    model : TNKMRegressor or TNKMRegressorCV
        Fitted.
    path : path
        By custom ``*.tlace``.
    notes : mapping, optional
        Text, numbers or booleans to keep with the model, such as when it was fitted or how well it
        did; `describe` gives them back.
    background : bool, default=True
        False leaves the training rows out. ``relevance_`` and ``summary()`` are kept, and
        ``partial_effects`` of the loaded model raises an `InputError`. Values of single columns
        stay in the file: knots of quantiles, smallest and largest values, names of categories.

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
    data = _to_bytes(model, notes or {}, background)
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
        ``class``; ``about`` the fit: version of tensorlace, rows, how many of them are in the file
        (``n_background``), columns, log evidence, noise, and how the model did on rows that were
        held out (None with a fixed rank, or few rows); ``notes``; ``version`` of the format;
        ``bytes``; shapes of all ``arrays`` by key.

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


def _to_bytes(model: Any, notes: Mapping[str, Note], background: bool = True) -> bytes:
    """A whole file."""
    name = type(model).__name__
    if name not in ESTIMATORS or estimator_class(name) is not type(model):
        raise ModelFileError(f"a {name} cannot be saved: give a fitted {' or '.join(ESTIMATORS)}")
    if "machines_" not in vars(model):
        raise ModelFileError(f"this {name} is not fitted: call fit before saving it")
    for key, note in notes.items():
        if not (isinstance(key, str) and isinstance(note, str | int | float | bool | None)):
            raise ModelFileError(f"notes[{key!r}] is {note!r:.80}: give text, numbers or booleans")
        if isinstance(note, float) and not math.isfinite(note):
            raise ModelFileError(f"notes[{key!r}] is {note}: give a finite number or text")
    encoder = Encoder(known_classes())
    kept = len(model._background.weight) if background and model._background is not None else 0
    content = {
        **_node(model, encoder, background, ""),
        "about": {**facts(model), "n_background": kept},
        "notes": dict(notes),
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return seal(text, VERSION, encoder.arrays)


def _node(model: Any, encoder: Encoder, background: bool, where: str) -> dict[str, Any]:
    """A fitted estimator as JSON; the one that a cross-validation chose is inside of it."""
    name = type(model).__name__
    params = model.get_params(deep=False)
    state = {key: value for key, value in vars(model).items() if key not in params}
    unknown = sorted(state.keys() - attributes(type(model)).keys())
    if unknown:
        raise ModelFileError(
            f"attribute {unknown[0]!r} ({type(state[unknown[0]]).__name__}) of {name} is not known "
            f"to model files: delete it, or add it to tensorlace.model_file.schema"
        )
    if not background:
        if isinstance(model, Explains):
            state["_relevance"] = model.relevance_
        state["_background"] = None
    inner = state.pop(_INNER, None)
    node: dict[str, Any] = {
        "class": name,
        "params": {
            k: encoder.encode(v, where + k)
            for k, v in sorted(params.items())
            if k not in LATER_PARAMS or v != LATER_PARAMS[k]
        },
        "state": {k: encoder.encode(v, where + k) for k, v in sorted(state.items())},
    }
    if inner is not None:
        node["state"][_INNER] = _node(inner, encoder, background, f"{where}{_INNER}.")
    return node


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        with open(os.fspath(path), "rb") as file:  # a number would be some open file
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
        decoder = Decoder(known_classes(), arrays)
        model = _model(content, decoder)
        if decoder.unused():
            raise ModelFileError(f"array {decoder.unused()[0][:80]!r} belongs to nothing")
        return model
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{name}: the model is nested too deeply") from error


def _model(content: dict[str, Any], decoder: Decoder, where: str = "") -> Any:
    cls = estimator_class(content["class"])
    if cls is None:
        raise ModelFileError(f"{content['class'][:80]!r} is no estimator of tensorlace")
    model = cls()
    params, state = content["params"], content["state"]
    for given, known, optional in (
        (params, model.get_params(deep=False), frozenset(LATER_PARAMS)),
        (state, attributes(cls), OPTIONAL),
    ):
        wrong = (given.keys() ^ known.keys()) - (optional - given.keys())
        if wrong:
            raise ModelFileError(f"{where}{', '.join(sorted(wrong))[:200]}: unknown or missing")
    model.set_params(**{key: decoder.decode(node, where + key) for key, node in params.items()})
    for key, node in state.items():
        inner = key == _INNER
        value = _inner(node, decoder) if inner else decoder.decode(node, where + key)
        setattr(model, key, value)
    try:
        model._validate_params()
    except (ValueError, TypeError) as error:
        raise ModelFileError(str(error)) from error
    check_model(model)
    return model


def _inner(node: Any, decoder: Decoder) -> Any:
    """The estimator inside of a cross-validated one, which has no other inside."""
    kinds = {"class": str, "params": dict, "state": dict}
    given = {k: type(v) for k, v in node.items()} if isinstance(node, dict) else {}
    if given != kinds or node["class"] != "TNKMRegressor":
        raise ModelFileError(f"{_INNER} is no estimator of tensorlace")
    return _model(node, decoder, f"{_INNER}.")
