"""One self-contained HTML page, and Markdown for the docs, from the finished cells."""

import re
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path

from tensorlace_lab.experiments import PAPER, experiment_named
from tensorlace_lab.measuring.cells import Record, Records
from tensorlace_lab.pages import drawings
from tensorlace_lab.pages.markup import html_table
from tensorlace_lab.paper.uci import SMALL_FIRST, with_quality

__all__ = ["write"]

STYLE = """
:root{--ink:#1c2330;--soft:#5b6577;--line:#dfe4ec;--blue:#1b5e9e;--back:#fff}
*{box-sizing:border-box}
body{margin:0;color:var(--ink);background:var(--back);font:16px/1.5 system-ui,sans-serif}
main{max-width:1320px;margin:0 auto;padding:24px 16px 64px}
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0}
h2{font-size:1.25rem;margin:2em 0 .5em;border-top:1px solid var(--line);padding-top:1em}
h3{font-size:1rem;margin:1.6em 0 .4em}
p,li{max-width:46em}
.note{color:var(--soft);font-size:.9rem}
.wide{overflow-x:auto;margin:.6em 0}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.3em .7em;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}
thead th{white-space:normal;vertical-align:bottom;color:var(--soft);font-weight:600}
td strong{color:var(--blue)}
td em{font-style:normal;border-bottom:2px dotted var(--blue)}
nav a{margin-right:1em}
a{color:var(--blue)}
svg{max-width:100%;height:auto}
.grid{display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(220px,1fr))}
@media(max-width:600px){body{font-size:15px}main{padding:12px 12px 48px}}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa5b8;--line:#333c4a;--blue:#7ab8f5;
--back:#14181f}.picture{background:#fff;border-radius:6px;padding:4px}}
"""


def write(results: Path, text_file: Path | None = None) -> list[Path]:
    """Write ``paper.html`` and a Markdown file for the records in a directory; the files."""
    found = {name: list(Records(results / name)) for name in PAPER}
    found["uci"] = with_quality(found["uci"], list(Records(results / "quality")))
    found = {name: records for name, records in found.items() if records}
    with suppress(ImportError):  # without matplotlib, those that were drawn before
        for name, records in found.items():
            experiment_named(name).figures(records, results / name)
    pictures = {path.stem: path for path in sorted(results.glob("*/*.svg"))}
    sections, text = [], ["# The experiments of the paper"]
    for name in sorted(found, key=lambda n: (n != "uci", list(PAPER).index(n))):
        experiment = experiment_named(name)
        body = _uci(found[name]) if name == "uci" else ""
        body = body or html_table(experiment.markdown(found[name]))
        if name in pictures:
            body += f'<div class="picture">{_inline(pictures[name].read_text(), name)}</div>'
        sections.append(
            f'<h2 id="{name}">{escape(experiment.title)}</h2>{body}{_footer(name, found[name])}'
        )
        text.append(f"## {experiment.title}\n\n{experiment.markdown(found[name])}")
    links = "".join(f'<a href="#{name}">{name}</a>' for name in found)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>tensorlace: results</title><style>{STYLE}</style></head><body><main>"
        f"<h1>tensorlace: the experiments of the paper</h1><nav>{links}</nav>"
        f"{''.join(sections) or '<p>Nothing is finished yet.</p>'}</main></body></html>\n"
    )
    results.mkdir(parents=True, exist_ok=True)
    files = [results / "paper.html", text_file or results / "paper.md"]
    for path, content in zip(files, (page, "\n\n".join(text) + "\n"), strict=True):
        path.write_text(content, encoding="utf-8")
    return files


def _uci(records: Sequence[Record]) -> str:
    sets = [name for name in SMALL_FIRST if any(r["set"] == name for r in records)]
    text = html_table(experiment_named("uci").markdown(records))
    return text + drawings.ranks(records, sets) + drawings.calibration(records, sets)


def _footer(name: str, records: Sequence[Record]) -> str:
    last = max(records, key=lambda r: r["date"])
    using = ", ".join(f"{k} {v}" for k, v in last["versions"].items())
    return (
        f'<p class="note"><code>python -m tensorlace_lab {name}</code>: '
        f"{len(records)} cells, {escape(last['date'])}, {escape(using)}.</p>"
    )


def _inline(svg: str, name: str) -> str:
    """A drawing without its XML head, its identifiers its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
