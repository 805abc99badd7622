"""What pages are made of: Markdown tables, numbers with errors, figures."""

__all__: list[str] = []
