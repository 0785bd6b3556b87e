"""Imports generated code, from a temporary file, so that tracebacks and `inspect` show its lines."""

import atexit
import contextlib
import importlib.util
import os
import tempfile

from runnel.autograph.pyct import origin_info, parser


def _remove_file(file_name):
    with contextlib.suppress(OSError):  # someone else removed it
        os.remove(file_name)


def load_source(source, delete_on_exit):
    """Returns (module, name of its file) of a source."""
    with tempfile.NamedTemporaryFile(mode="w", suffix=".py", prefix="__autograph_generated_file", delete=False, encoding="utf-8") as file:
        name = os.path.basename(file.name[:-3])
        file.write(source)
    if delete_on_exit:
        atexit.register(_remove_file, file.name)
    spec = importlib.util.spec_from_file_location(name, file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, file.name


def load_ast(nodes, indentation="  ", include_source_map=False, delete_on_exit=True):
    """Returns (module, source, source map or None) of a tree or of several."""
    nodes = list(nodes) if isinstance(nodes, (list, tuple)) else [nodes]
    source = parser.unparse(nodes, indentation=indentation)
    module, name = load_source(source, delete_on_exit)
    return module, source, origin_info.create_source_map(nodes, source, name) if include_source_map else None
