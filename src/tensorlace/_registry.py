"""Names and what they stand for: one open table per seam."""

from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Generic, TypeVar, final

from tensorlace.errors import UnknownNameError

__all__ = ["Registry"]

T = TypeVar("T")


@final
class Registry(Mapping[str, T], Generic[T]):
    """Members of one kind by name, in the order in which they came.

    Parameters
    ----------
    what : str
        What a member is, for messages.
    members : mapping
        Those that are there from the start.

    Examples
    --------
    >>> squares = Registry("power", {"square": 2})
    >>> squares.register("cube", 3)
    3
    >>> list(squares), squares["cube"]
    (['square', 'cube'], 3)
    >>> squares["root"]
    Traceback (most recent call last):
    tensorlace.errors.UnknownNameError: power 'root' is not known: choose from square, cube
    """

    def __init__(self, what: str, members: Mapping[str, T]) -> None:
        self.what = what
        self._members = dict(members)

    def register(self, name: str, value: T) -> T:
        """Add a member, or replace the one of this name, and hand it back.

        It is known from then on wherever names of this kind are taken.
        """
        self._members[name] = value
        return value

    def remove(self, name: str) -> T:
        """Take a member out and hand it back."""
        value = self[name]
        del self._members[name]
        return value

    def classes(self) -> tuple[type, ...]:
        """Classes behind the members, each once.

        A member may be a class, a partial application of one, or an instance. A function says
        nothing of what it makes.
        """
        found: dict[type, None] = {}
        for member in self._members.values():
            made: object = member
            while isinstance(made, partial):
                made = made.func
            if not isinstance(made, FunctionType):
                found[made if isinstance(made, type) else type(made)] = None
        return tuple(found)

    def __getitem__(self, name: str) -> T:
        if name not in self._members:
            raise UnknownNameError(
                f"{self.what} {name!r} is not known: choose from {', '.join(self._members)}"
            )
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)
