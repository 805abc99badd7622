"""Plots as inline SVG; classes name colours of the style sheet of the page."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any, Self, final

import numpy as np

__all__ = ["Plot", "bars", "sparkline", "ticks"]

WIDTH, HEIGHT = 460, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 44


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    raw = (high - low) / n
    if not raw > 0.0 or not math.isfinite(raw):
        return [low]
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    found = [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return [t + 0.0 for t in found] or [low]


def label(x: float) -> str:
    """Label of a tick of an axis.

    >>> [label(x) for x in (0.25, 37000.0, 4978616.0, 1e-5)]
    ['0.25', '37k', '4.98M', '1e-05']
    """
    size = abs(x)
    if size < 1e4 or size >= 1e9:
        return f"{x:.4g}" if size < 1e9 else f"{x:.2g}"
    return f"{x / 1e3:.3g}k" if size < 1e6 else f"{x / 1e6:.3g}M"


@final
class Plot:
    """Axes and what is drawn on them, bottom to top; `svg` gives the text.

    Parameters
    ----------
    x, y : (float, float)
        Ranges of the axes.
    title : str
        What the picture says, for those who cannot see it.
    xlabel, ylabel : str
    ylog : bool
        A logarithmic axis; values at or below 0 are left out.
    xticks, yticks : sequence of (float, str), optional
        Places and labels; round numbers by default.
    """

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        title: str,
        xlabel: str,
        ylabel: str,
        ylog: bool = False,
        xticks: Sequence[tuple[float, str]] | None = None,
        height: int = HEIGHT,
    ) -> None:
        self._ylog, self._height, self.title = ylog, height, title
        if ylog:
            y = math.log10(y[0]), math.log10(y[1])
        self._x, self._y = _opened(*x), _opened(*y)
        self._body: list[str] = []
        self._labels = xlabel, ylabel
        self._xticks = xticks or [(t, label(t)) for t in ticks(*self._x)]

    def _px(self, x: Any) -> Any:
        low, high = self._x
        return _LEFT + (np.asarray(x, dtype=float) - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)

    def _py(self, y: Any) -> Any:
        low, high = self._y
        y = np.asarray(y, dtype=float)
        if self._ylog:
            y = np.log10(np.maximum(y, 1e-300))
        y = np.clip(y, low - (high - low), high + (high - low))
        return self._height - _BOTTOM - (y - low) / (high - low) * (self._height - _TOP - _BOTTOM)

    def line(self, x: Any, y: Any, style: str = "s0") -> Self:
        """A line through points."""
        pairs = zip(np.atleast_1d(self._px(x)), np.atleast_1d(self._py(y)), strict=True)
        points = [f"{a:.1f} {b:.1f}" for a, b in pairs if math.isfinite(a) and math.isfinite(b)]
        if points:
            self._body.append(f'<path class="line {style}" d="M{"L".join(points)}"/>')
        return self

    def area(self, x: Any, low: Any, high: Any, style: str = "band") -> Self:
        """Area between two lines."""
        px, a, b = self._px(x), self._py(low), self._py(high)
        there = [f"{p:.1f} {q:.1f}" for p, q in zip(px, b, strict=True)]
        back = [f"{p:.1f} {q:.1f}" for p, q in zip(px[::-1], a[::-1], strict=True)]
        self._body.append(f'<path class="area {style}" d="M{"L".join(there + back)}Z"/>')
        return self

    def points(self, x: Any, y: Any, style: str = "dots", radius: float = 2.0) -> Self:
        """Dots: one path of round caps, which is far smaller than a circle each."""
        d = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(self._px(x), self._py(y), strict=True))
        self._body.append(f'<path class="{style}" style="stroke-width:{2 * radius:g}" d="{d}"/>')
        return self

    def stems(self, x: Any, low: Any, high: Any, style: str = "stems") -> Self:
        """Vertical lines."""
        parts = zip(self._px(x), self._py(low), self._py(high), strict=True)
        d = "".join(f"M{p:.1f} {a:.1f}V{b:.1f}" for p, a, b in parts)
        self._body.append(f'<path class="{style}" d="{d}"/>')
        return self

    def rug(self, x: Any, style: str = "rug") -> Self:
        """Short lines along the lower edge: where rows are."""
        bottom = self._height - _BOTTOM
        d = "".join(f"M{p:.1f} {bottom}v-5" for p in np.unique(np.round(self._px(x), 1)))
        self._body.append(f'<path class="{style}" d="{d}"/>')
        return self

    def boxes(self, left: Any, right: Any, low: Any, high: Any, style: str = "bar") -> Self:
        """Rectangles."""
        parts = zip(self._px(left), self._px(right), self._py(low), self._py(high), strict=True)
        d = "".join(
            f"M{p + 0.5:.1f} {a:.1f}V{b:.1f}H{q - 0.5:.1f}V{a:.1f}Z" for p, q, a, b in parts
        )
        self._body.append(f'<path class="{style}" d="{d}"/>')
        return self

    def level(self, y: float, text: str = "", style: str = "ref") -> Self:
        """A horizontal line, with a word at its right end."""
        self.line(self._x, (y, y), style)
        if text:
            at = f'x="{WIDTH - _RIGHT - 4}" y="{float(self._py(y)) - 5:.1f}"'
            self._body.append(f'<text class="note" text-anchor="end" {at}>{escape(text)}</text>')
        return self

    def svg(self) -> str:
        """SVG element of the plot."""
        bottom = self._height - _BOTTOM
        grid, words = [], []
        for value, text in self._xticks:
            px = float(self._px(value))
            grid.append(f"M{px:.1f} {_TOP}V{bottom}")
            anchor = "end" if px + 4 * len(text) > WIDTH else "middle"
            px = min(px, WIDTH - 1.0)
            words.append(
                f'<text text-anchor="{anchor}" x="{px:.1f}" y="{bottom + 17}">{escape(text)}</text>'
            )
        for value, text in self._yticks():
            py = float(self._py(value))
            grid.append(f"M{_LEFT} {py:.1f}H{WIDTH - _RIGHT}")
            words.append(
                f'<text text-anchor="end" x="{_LEFT - 6}" y="{py + 4:.1f}">{escape(text)}</text>'
            )
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        xlabel, ylabel = map(escape, self._labels)
        name = '<text class="name" text-anchor="middle"'
        words.append(f'{name} x="{middle}" y="{self._height - 6}">{xlabel}</text>')
        turn = f'transform="translate(13 {(_TOP + bottom) / 2}) rotate(-90)"'
        words.append(f"{name} {turn}>{ylabel}</text>")
        across, down = WIDTH - _LEFT - _RIGHT, bottom - _TOP
        inside = f'<svg x="{_LEFT}" y="{_TOP}" width="{across}" height="{down}" '
        inside += f'viewBox="{_LEFT} {_TOP} {across} {down}">'
        return (
            f'<svg class="plot" role="img" aria-label="{escape(self.title)}" '
            f'viewBox="0 0 {WIDTH} {self._height}"><path class="grid" d="{"".join(grid)}"/>'
            f"{inside}{''.join(self._body)}</svg>{''.join(words)}</svg>"
        )

    def _yticks(self) -> list[tuple[float, str]]:
        if not self._ylog:
            return [(t, label(t)) for t in ticks(*self._y)]
        low, high = math.ceil(self._y[0]), math.floor(self._y[1])
        step = max(1, (high - low) // 5)
        return [(10.0**k, label(10.0**k)) for k in range(low, high + 1, step)]


def _opened(low: float, high: float) -> tuple[float, float]:
    """The range, widened if it has no width."""
    if high > low:
        return float(low), float(high)
    pad = abs(low) * 0.05 or 0.5
    return float(low) - pad, float(high) + pad


def bars(names: Sequence[str], shares: Sequence[float], title: str) -> str:
    """Horizontal bars with their names and shares in percent."""
    top = max([*shares, 1e-300])
    rows = []
    for k, (name, share) in enumerate(zip(names, shares, strict=True)):
        y, short = 4 + 24 * k, name if len(name) <= 20 else name[:19] + "…"
        width = max(236 * share / top, 0.5)
        rows.append(
            f'<text text-anchor="end" x="146" y="{y + 14}">{escape(short)}</text>'
            f'<rect class="bar" x="152" y="{y}" width="{width:.1f}" height="18"/>'
            f'<text x="{158 + width:.1f}" y="{y + 14}">{share:.1%}</text>'
        )
    size = f"0 0 {WIDTH} {8 + 24 * len(names)}"
    head = f'<svg class="plot" role="img" aria-label="{escape(title)}" viewBox="{size}">'
    return head + "".join(rows) + "</svg>"


def sparkline(counts: Any) -> str:
    """Histogram as small as a word."""
    top = max(float(np.max(counts, initial=0.0)), 1.0)
    width = 84 / max(len(counts), 1)
    d = "".join(
        f"M{k * width:.1f} 20v{-19 * c / top:.1f}h{width - 0.7:.1f}V20Z"
        for k, c in enumerate(counts)
    )
    head = '<svg class="spark" aria-hidden="true" viewBox="0 0 84 20">'
    return f'{head}<path class="bar" d="{d}"/></svg>'
