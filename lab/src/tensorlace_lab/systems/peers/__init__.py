"""Regressors of other libraries, as users have them."""

__all__: list[str] = []
