"""What columns do to predictions (averaged response, relevance, effects), and a summary."""

__all__: list[str] = []
