"""How the documentation is built: `make docs` at the root of the project."""

import sys
import warnings
from pathlib import Path

import tuplet

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "Tuplet"
author = "The Tuplet developers"
copyright = f"2026, {author}"
version = release = tuplet.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "api_pages",
    "results_pages",
    "cli_pages",
]
exclude_patterns = ["_build", "_ext", "api/_*", "gallery/GALLERY_HEADER.rst", "**/sg_execution_times.rst"]

# -- text --------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes_action = "D"  # dashes, but no quotes: "auto" is a value and has to look like one
default_role = "name"  # `x` in a docstring: a link if x is public, code otherwise
# Sections of results begin at the third level, wherever they are included; papers that a docstring lists
# need not be cited in it.
suppress_warnings = ["myst.header", "ref.footnote"]

# -- docstrings --------------------------------------------------------------------------------------------

autodoc_typehints = "none"  # docstrings say types and shapes in words
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_param = False  # several parameters that are told together stay together
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
viewcode_line_numbers = True

# -- pages -------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"Tuplet {release}"
html_static_path = ["_static"]
html_css_files = ["tuplet.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- gallery -----------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!deep_)\w+\.py$",  # networks need torch: shown, not run
    "ignore_pattern": r"/_",
    "within_subsection_order": "example_order.ReadingOrder",
    "abort_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "plot_gallery": True,
    "matplotlib_animations": False,
    "write_computation_times": False,
}
# Examples run as users run them: what they are warned of is part of the page, but nothing else is.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
