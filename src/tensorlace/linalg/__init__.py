"""Dense linear algebra that knows no rows: LAPACK, symmetric systems, the BLAS lock."""

__all__: list[str] = []
