"""How the documentation is built: ``make docs``. Nothing is fetched from a network."""

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib

import tensorlace

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "tensorlace"
author = "The tensorlace developers"
project_copyright = author
version = release = tensorlace.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    "gallery",
    "sg_execution_times.rst",
    "examples/sg_execution_times.rst",
]
default_role = "py:obj"
html_math_renderer = "mathml"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # types are in the text of the docstrings
autodoc_member_order = "bysource"
autodoc_mock_imports = ["lightgbm", "ngboost"]  # peers that the documentation runs without
autosummary_generate = True
numpydoc_show_class_members = False

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "copyfile_regex": r"(?!)",
    "matplotlib_animations": False,
    "min_reported_time": 1e9,
    "image_scrapers": ("matplotlib",),
    "backreferences_dir": None,
    "reset_modules": ("matplotlib",),
    "nested_sections": False,
    "capture_repr": (),
}
warnings.simplefilter("error")  # an example that warns is no example
warnings.filterwarnings("ignore", category=DeprecationWarning)
warnings.filterwarnings("ignore", category=PendingDeprecationWarning)

html_theme = "pydata_sphinx_theme"
html_title = "tensorlace"
FONT = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSerif.ttf")  # has mathematics
html_static_path = ["_static", str(FONT)]
html_css_files = ["tensorlace.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "tensorlace"},
    "navbar_align": "left",
    "header_links_before_dropdown": 9,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": True,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars: dict[str, list[str]] = {  # single pages have no section to navigate
    page: [] for page in ("index", "installation", "tutorial", "mathematics", "architecture")
}


MADE = ("benchmarks", "quality", "simple", "tables", "uci")
"""Pages that benchmarks make; they may not be there yet."""


def _drop_links_to_pages_not_made(_app: object, _name: str, content: list[str]) -> None:
    """A link to a page that is not there becomes text, its line in a table of contents goes."""
    for page in MADE:
        if not (HERE / f"{page}.md").exists():
            text = re.sub(rf"\[([^\]]+)\]\({page}\.md\)", r"\1", content[0])
            content[0] = re.sub(rf"^{page}\n", "", text, flags=re.MULTILINE)


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("source-read", _drop_links_to_pages_not_made)
