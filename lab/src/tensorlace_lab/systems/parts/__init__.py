"""What several compared systems share."""

__all__: list[str] = []
