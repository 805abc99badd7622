"""The laboratory of tensorlace: compared systems, the paper's experiments, measurements."""

__all__: list[str] = []
