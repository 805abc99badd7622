"""The tables and figures of the paper, and the procedures they compare."""

__all__: list[str] = []
