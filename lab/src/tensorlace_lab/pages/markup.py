"""Markdown of tables, headings and paragraphs in HTML."""

import re
from html import escape

__all__ = ["html_table"]


def html_table(text: str) -> str:
    """Markdown of tables, headings and paragraphs as HTML.

    >>> html_table("### *NLL*")
    '<h3><em>NLL</em></h3>'
    """
    out = []
    for block in re.split(r"\n\n+", text.strip()):
        lines = block.splitlines()
        if block.startswith("### "):
            out.append(f"<h3>{_words(block[4:])}</h3>")
        elif len(lines) >= 2 and lines[1].startswith("| ---"):
            head, _, *rows = ([c.strip() for c in line.strip("|").split(" | ")] for line in lines)
            top = "".join(f"<th>{_words(c)}</th>" for c in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{_words(c)}</td>" for c in row) + "</tr>" for row in rows
            )
            out.append(
                f'<div class="wide"><table><thead><tr>{top}</tr></thead>'
                f"<tbody>{body}</tbody></table></div>"
            )
        else:
            out.append(f"<p>{_words(block)}</p>")
    return "".join(out)


def _words(text: str) -> str:
    text = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escape(text.strip(), quote=False))
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)
