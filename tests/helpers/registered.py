"""A member of a registry for as long as a test takes."""

from contextlib import contextmanager


@contextmanager
def registered(registry, name, value):
    """Register a member, and take it out again."""
    registry.register(name, value)
    try:
        yield value
    finally:
        registry.remove(name)
