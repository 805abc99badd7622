"""One file per command."""

__all__: list[str] = []
