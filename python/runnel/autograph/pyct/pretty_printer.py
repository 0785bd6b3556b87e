"""Trees as text, one field per line."""

import ast

from runnel.autograph.pyct import anno

_COLORS = {"type": 34, "field": 32, "value": 33, "note": 31}  # ANSI's numbers


class PrettyPrinter:
    """Writes a tree. |color| uses the colors of terminals, |noanno| leaves notes out."""

    def __init__(self, color, noanno):
        self._color, self._noanno = color, noanno
        self._rows = []

    @property
    def result(self):
        """The text."""
        return "\n".join(self._rows) + "\n"

    def _paint(self, text, kind):
        return "\033[%dm%s\033[0m" % (_COLORS[kind], text) if self._color else text

    def _row(self, depth, name, text):
        self._rows.append("| " * depth + (self._paint(name, "field") + "=" if name else "") + text)

    def write(self, node, depth=0, name=None):
        """Adds a node, a list or a value."""
        if isinstance(node, ast.AST):
            self._row(depth, name, self._paint(type(node).__name__, "type") + ":")
            for key in () if self._noanno else sorted(anno.keys(node), key=str):
                self._row(depth + 1, None, self._paint("%s: %s" % (key, anno.getanno(node, key)), "note"))
            for field in node._fields:
                self.write(getattr(node, field, None), depth + 1, field)
        elif isinstance(node, (list, tuple)) and node:
            self._row(depth, name, "[")
            for one in node:
                self.write(one, depth + 1)
            self._row(depth, None, "]")
        else:
            self._row(depth, name, self._paint(repr(node), "value"))


def fmt(node, color=True, noanno=False):
    """Returns a tree, or several, as text."""
    printer = PrettyPrinter(color, noanno)
    for one in node if isinstance(node, (list, tuple)) else [node]:
        printer.write(one)
    return printer.result
