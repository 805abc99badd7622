"""Markdown and HTML of what is finished."""

__all__: list[str] = []
