# Sphinx's configuration of `make docs`; tools/docs/site.py copies it beside the pages and sets the variables.
import os

project = "Runnel"
author = "Runnel's authors"
version = release = os.environ["RUNNEL_DOCS_VERSION"]
extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
html_theme = "sphinx_rtd_theme"
html_theme_options = {"navigation_depth": 2, "collapse_navigation": True}
html_copy_source = html_show_sourcelink = False
myst_heading_anchors = 5  # the anchors that GitHub makes
# Examples may omit code with "…", which is not valid C.
suppress_warnings = ["misc.highlighting_failure"]
c_id_attributes = ["TF_EXPORT"]
primary_domain = None
highlight_language = "text"
