"""Mathematics as MathML, by the converter that docutils brings: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

_SPACE = re.compile(r">\s+<")


def mathml(tex: str, *, block: bool) -> str:
    """MathML of a formula on one line; a formula that cannot be converted ends the build."""
    try:
        text = tex2mathml(tex, as_block=block)
    except MathError as error:
        raise SphinxError(f"{error} in the formula {tex!r}") from error
    return _SPACE.sub("><", text).strip()


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(f"{mathml(node.astext(), block=True)}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer to ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
