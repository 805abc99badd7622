"""Kinds of columns as words: ``hour=periodic:24``."""

from collections.abc import Sequence

from tensorlace.errors import InputError
from tensorlace.kinds import Categorical, Datetime, Kind, Numeric, Ordinal, Periodic

__all__ = ["parse_kinds"]

_PLAIN = {"numeric": Numeric(), "categorical": Categorical(), "datetime": Datetime()}


def parse_kinds(texts: Sequence[str]) -> dict[str, Kind]:
    """From ``name=kind`` to kinds by name.

    >>> parse_kinds(["hour=periodic:24", "size=ordinal:S,M,L", "shop=categorical"])
    {'hour': Periodic(period=24.0), 'size': Ordinal(order=('S', 'M', 'L')), 'shop': Categorical()}
    """
    out: dict[str, Kind] = {}
    for text in texts:
        name, equals, word = text.rpartition("=")
        kind = _parse(word) if equals else None
        if kind is None or not name:
            raise InputError(
                f"--columns {text!r} is not name=kind with a kind of numeric, categorical, "
                f"datetime, periodic:24 or ordinal:low,middle,high"
            )
        if name in out:
            raise InputError(f"--columns names {name!r} twice: give it one kind")
        out[name] = kind
    return out


def _parse(word: str) -> Kind | None:
    kind, _, rest = word.partition(":")
    if kind in _PLAIN and not rest:
        return _PLAIN[kind]
    if kind == "ordinal":
        return Ordinal(rest.split(","))
    if kind == "periodic":
        try:
            return Periodic(float(rest))
        except ValueError:
            return None
    return None
