"""Model files: one safe file for a fitted model, without pickle.

A ``.tlace`` file is a sealed safetensors file, see `tensorlace.model_file.container`, so that it is
read whole or not at all. Its ``model`` is JSON: class, arguments, what the fit has learnt (see
`tensorlace.model_file.state`), facts about the fit, notes. Loading looks classes up in
`tensorlace.model_file.schema` and runs nothing that a file could name.
"""

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError

from tensorlace._atomic import write_atomically
from tensorlace.errors import ModelFileError
from tensorlace.estimators.registry import MODULES, default_arguments, estimator_named, holding
from tensorlace.explain.relevance import relevance_of
from tensorlace.machines.fitted_model import FittedModel, HoldsModel, holder
from tensorlace.model_file.about import facts
from tensorlace.model_file.chosen import CHOOSER, chosen_model, chosen_node
from tensorlace.model_file.codec import Decoder, Encoder
from tensorlace.model_file.container import Arrays, seal, strict_json, unseal
from tensorlace.model_file.schema import (
    CHOSEN,
    INNER,
    LATER_PARAMS,
    OPTIONAL,
    attributes,
    check_state,
    known_classes,
)
from tensorlace.model_file.state import model_of, state_of

__all__ = ["VERSION", "describe", "load", "save"]

VERSION = 1
"""Version of the format; a file of another one is refused."""

Note = str | int | float | bool | None


def save(
    model: FittedModel | HoldsModel,
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
    model : TNKMRegressor, TNKMRegressorCV or FittedModel
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
    """Read a model that `save` wrote, the same to the bit, as the estimator that fitted it.

    Raises
    ------
    ModelFileError
        For anything but a whole model file of this version: a file that cannot be read, is cut
        short, has a single bit changed, or names what is not known. Nothing of it is ever run.
    """
    return _from_bytes(_read(path), str(path))


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Description of a model file as plain data.

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
    """Bytes of the file of a model."""
    if not isinstance(model, FittedModel | HoldsModel):
        name = type(model).__name__
        raise ModelFileError(f"a {name} cannot be saved: give a fitted {' or '.join(MODULES)}")
    for key, note in notes.items():
        if not (isinstance(key, str) and isinstance(note, str | int | float | bool | None)):
            raise ModelFileError(f"notes[{key!r}] is {note!r:.80}: give text, numbers or booleans")
        if isinstance(note, float) and not math.isfinite(note):
            raise ModelFileError(f"notes[{key!r}] is {note}: give a finite number or text")
    encoder = Encoder(known_classes())
    node = _node(model, encoder, background, "")
    fitted = holder(model).fitted_model()
    kept = len(fitted.rows.weight) if background and fitted.rows is not None else 0
    content = {
        **node,
        "about": {**facts(fitted), "n_background": kept},
        "notes": dict(notes),
    }
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return seal(text, VERSION, encoder.arrays)


def _node(
    model: FittedModel | HoldsModel, encoder: Encoder, background: bool, where: str
) -> dict[str, Any]:
    """A fitted model as JSON; the one that a cross-validation chose is inside of it."""
    name = model.record.estimator if isinstance(model, FittedModel) else type(model).__name__
    if name not in MODULES or type(model) not in (FittedModel, estimator_named(name)):
        raise ModelFileError(f"a {name} cannot be saved: give a fitted {' or '.join(MODULES)}")
    try:
        fitted = holder(model).fitted_model()
    except NotFittedError as error:
        raise ModelFileError(f"this {name} is not fitted: call fit before saving it") from error
    record = fitted.record
    if isinstance(model, HoldsModel):
        _refuse_unknown(model)
        if name == CHOOSER:
            best = getattr(model, INNER)
            return chosen_node(model, encoder, _node(best, encoder, background, f"{INNER}."))
    if not background:
        fitted = replace(fitted.with_relevance(relevance_of(fitted)), rows=None).unlisted()
    state = state_of(fitted)
    return {
        "class": name,
        "params": {
            k: encoder.encode(v, where + k)
            for k, v in sorted(record.arguments.items())
            if k not in LATER_PARAMS or v != LATER_PARAMS[k]
        },
        "state": {k: encoder.encode(v, where + k) for k, v in sorted(state.items())},
    }


def _refuse_unknown(model: Any) -> None:
    """Refuse an estimator with an attribute that its file would not hold."""
    known = {*model.get_params(deep=False), "model_", "n_features_in_", "feature_names_in_"}
    known |= {*CHOSEN, INNER}
    unknown = sorted(vars(model).keys() - known)
    if unknown:
        what = type(vars(model)[unknown[0]]).__name__
        raise ModelFileError(
            f"attribute {unknown[0]!r} ({what}) of {type(model).__name__} is not known to model "
            f"files: delete it"
        )


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
    """Estimator that holds the fitted model of a node."""
    name = content["class"]
    if name not in MODULES:
        raise ModelFileError(f"{name[:80]!r} is no estimator of tensorlace")
    params, state = content["params"], content["state"]
    if name == CHOOSER:
        return chosen_model(content, decoder, _inner(state.get(INNER), decoder))
    arguments = default_arguments(name).keys()
    for given, known, optional in (
        (params.keys(), arguments, frozenset(LATER_PARAMS)),
        (state.keys(), attributes(name).keys(), OPTIONAL),
    ):
        wrong = (given ^ known) - (optional - given)
        if wrong:
            raise ModelFileError(f"{where}{', '.join(sorted(wrong))[:200]}: unknown or missing")
    params = {key: decoder.decode(node, where + key) for key, node in params.items()}
    state = {key: decoder.decode(node, where + key) for key, node in state.items()}
    check_state(name, state)
    try:
        return holding(model_of(name, params, state))
    except (ValueError, TypeError) as error:
        raise ModelFileError(str(error)) from error


def _inner(node: Any, decoder: Decoder) -> Any:
    """The estimator inside of a cross-validated one, which has no other inside."""
    kinds = {"class": str, "params": dict, "state": dict}
    given = {k: type(v) for k, v in node.items()} if isinstance(node, dict) else {}
    if given != kinds or node["class"] != "TNKMRegressor":
        raise ModelFileError(f"{INNER} is no estimator of tensorlace")
    return _model(node, decoder, f"{INNER}.")
