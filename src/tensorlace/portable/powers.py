"""Powers of complex numbers, of which the operations know real ones only."""

from tensorlace.portable.builder import Builder, Value

__all__ = ["complex_powers"]


def complex_powers(g: Builder, real: Value, imag: Value, n: int) -> tuple[Value, Value]:
    """Real and imaginary parts (n, rows) of ``z^0 ... z^(n-1)``, by doubling.

    ``z^(k+1) ... z^(2k)`` is ``z^k`` times ``z^1 ... z^k``, as in `tensorlace.columns.bases`.
    """
    re, im = [g.expand(1.0, real)], [g.expand(0.0, real)]
    a, b = g.stack(re), g.stack(im)
    if n > 1:
        a, b = g.stack([*re, real]), g.stack([*im, imag])
    k = 1
    while k + 1 < n:
        m = min(k, n - 1 - k)
        x, y = g.row(a, k), g.row(b, k)
        c, d = g.slice(a, 1, m + 1), g.slice(b, 1, m + 1)
        a, b = g.concat([a, x * c - y * d]), g.concat([b, x * d + y * c])
        k += m
    return a, b
