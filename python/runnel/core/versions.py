"""Versions of graphs and of the build."""

from runnel import _core

GRAPH_DEF_VERSION = 2474
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
CXX11_ABI_FLAG, CXX_VERSION, MONOLITHIC_BUILD = 1, 201703, 0
VERSION, GIT_VERSION = "2.21.0", "unknown"
COMPILER_VERSION = "runnel-" + _core.version
__version__, __git_version__, __compiler_version__ = VERSION, GIT_VERSION, COMPILER_VERSION
