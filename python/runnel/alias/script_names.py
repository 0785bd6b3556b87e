"""Finds the names of `tf` that a script uses and Runnel lacks: python -m runnel --names."""

import ast
import sys


class _Finder(ast.NodeVisitor):
    """Collects (line, name) for every name that is reached through tensorflow."""

    def __init__(self):
        self.modules = {}  # name in the script -> name below tf ("" is tf itself)
        self.used = []

    def visit_Import(self, node):
        for alias in node.names:
            below = _below(alias.name)
            if below is not None:
                if alias.asname:
                    self.modules[alias.asname] = below
                else:
                    self.modules["tensorflow"] = ""
                self._use(node, below)

    def visit_ImportFrom(self, node):
        below = _below(node.module or "") if not node.level else None
        if below is None:
            return
        for alias in node.names:
            name = ".".join(part for part in (below, alias.name) if part)
            name = _below("tensorflow." + name)
            self.modules[alias.asname or alias.name] = name
            self._use(node, name)

    def visit_Attribute(self, node):
        parts = []
        value = node
        while isinstance(value, ast.Attribute):
            parts.insert(0, value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in self.modules:
            below = self.modules[value.id]
            self._use(node, _below(".".join(part for part in ["tensorflow", below] + parts if part)))
        else:
            self.generic_visit(node)

    def _use(self, node, name):
        if name:
            self.used.append((node.lineno, name))


def _below(name):
    """Returns the part of a dotted name below tensorflow, or None if the name does not begin with tensorflow."""
    parts = name.split(".")
    if parts[0] not in ("tensorflow", "runnel"):
        return None
    parts = parts[1:]
    while parts[:2] == ["compat", "v1"]:
        parts = parts[2:]
    return ".".join(parts)


def _missing(name, face):
    """Returns the shortest prefix of a name that a face lacks; None if it lacks none. Attributes of values are not checked."""
    import types
    value, done = face, []
    for part in name.split("."):
        done.append(part)
        if not isinstance(value, types.ModuleType) and value is not None and not isinstance(value, type):
            return None
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            return ".".join(done)
    return None


def absent(path, face):
    """Returns ([(line, absent name)], number of names that the script uses) for a face, runnel or runnel.v2."""
    with open(path, encoding="utf-8") as stream:
        tree = ast.parse(stream.read(), path)
    finder = _Finder()
    finder.visit(tree)
    rows = []
    for line, name in finder.used:
        missing = _missing(name, face)
        if missing is not None and (line, missing) not in rows:
            rows.append((line, missing))
    return sorted(rows), len({name for _, name in finder.used})


def main(paths, output, is_v2=False):
    """Gives `output` one line "file:line: tf.name" per absent name, and stderr a summary per file. Returns 1 if a name is absent."""
    import importlib
    found, face = False, importlib.import_module("runnel.v2" if is_v2 else "runnel")
    for path in paths:
        try:
            rows, count = absent(path, face)
        except OSError as error:
            print("cannot read '%s': %s" % (path, error.strerror), file=sys.stderr)
            return 2
        except SyntaxError as error:
            print("%s:%s: %s" % (path, error.lineno, error.msg), file=sys.stderr)
            return 2
        for line, name in rows:
            output("%s:%d: tf.%s" % (path, line, name))
            found = True
        missing = len({name for _, name in rows})
        print("%s: %s" % (path, "uses no names of tensorflow" if not count else "all %d names are supported" % count if not missing else
                          "%d of %d names are absent" % (missing, count)), file=sys.stderr)
    return 1 if found else 0
