"""The systems of the paper's comparison and of its related work."""

__all__: list[str] = []
