"""Feature blocks and the one sum over them: in memory, streamed, growing."""

__all__: list[str] = []
