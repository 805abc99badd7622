"""What columns do to predictions: averaged response, relevance, effects."""

__all__: list[str] = []
