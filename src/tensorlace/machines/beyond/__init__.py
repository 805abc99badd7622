"""What machines say beyond their training rows: values unlike any, means that stay, wider bands.

Imports from: portable, columns, networks, laplace.
"""

__all__: list[str] = []
