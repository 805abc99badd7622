"""From a raw column to features: encoding, summaries, warps, rotation, bases."""

__all__: list[str] = []
