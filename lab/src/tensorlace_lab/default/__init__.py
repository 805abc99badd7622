"""How the default does on tables, and on data with little to find."""

__all__: list[str] = []
