"""The tensor network and its arithmetic on a block of rows."""

__all__: list[str] = []
