"""What is fitted and predicts: one machine, its noise, an ensemble."""

__all__: list[str] = []
