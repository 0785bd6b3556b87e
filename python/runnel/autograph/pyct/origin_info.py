"""Where nodes come from: the lines of the user's code."""

import ast
import collections
import difflib
import io
import os
import tokenize

from runnel.autograph.pyct import anno, ast_util, inspect_utils, parser, syntax


class LineLocation(collections.namedtuple("LineLocation", ("filename", "lineno"))):
    """A line of a file."""


class Location(collections.namedtuple("Location", ("filename", "lineno", "col_offset"))):
    """A place in a file."""

    @property
    def line_loc(self):
        """The line of the place."""
        return LineLocation(self.filename, self.lineno)


class OriginInfo(collections.namedtuple("OriginInfo", ("loc", "function_name", "source_code_line", "comment"))):
    """A place, the function around it, its line, and the comment at the end of the line."""

    def as_frame(self):
        """Returns the row that a traceback would have."""
        return self.loc.filename, self.loc.lineno, self.function_name, self.source_code_line

    def __repr__(self):
        return "%s:%s:%s" % (os.path.basename(str(self.loc.filename)), self.loc.lineno, self.loc.col_offset)


def create_source_map(nodes, code, filepath):
    """Returns {line of generated code: OriginInfo}, where |code| is the text that was generated for |nodes|."""
    made = parser.parse(parser.dedent_block(code), single_node=False)
    found = {}
    try:
        pairs = list(ast_util.parallel_walk(list(nodes) if isinstance(nodes, (list, tuple)) else [nodes], made))
    except ValueError as error:
        rows = difflib.unified_diff(parser.unparse(nodes).split("\n"), code.split("\n"), lineterm="")
        raise ValueError("the generated code is not that of its nodes: %s\n%s" % (error, "\n".join(rows))) from None
    for node, again in pairs:
        origin = anno.getanno(node, anno.Basic.ORIGIN, None) if isinstance(node, ast.AST) else None
        if origin is None or not hasattr(again, "lineno"):
            continue
        place = LineLocation(filepath, again.lineno)
        if place not in found or origin.loc.lineno < found[place].loc.lineno:
            found[place] = origin
    return found


class OriginResolver(ast.NodeVisitor):
    """Notes where the nodes of a source are in a file."""

    def __init__(self, lines, comments, lineno, col_offset, filepath):
        self._lines, self._comments = lines, comments
        blank = next((i for i, row in enumerate(lines) if row.strip()), 0)  # the place is that of the first line with code
        self._lineno, self._col_offset, self._filepath = lineno - blank - 1, col_offset, filepath
        self._functions = []

    def visit(self, node):
        is_named = isinstance(node, (syntax.FunctionDef, syntax.AsyncFunctionDef))
        if is_named:
            self._functions.append(node.name)
        if getattr(node, "lineno", None) is not None:
            row = self._lines[node.lineno - 1] if node.lineno <= len(self._lines) else ""
            place = Location(self._filepath, self._lineno + node.lineno, self._col_offset + node.col_offset)
            name = self._functions[-1] if self._functions else "<lambda>"
            anno.setanno(node, anno.Basic.ORIGIN, OriginInfo(place, name, row, self._comments.get(node.lineno)))
        self.generic_visit(node)
        if is_named:
            self._functions.pop()


def _comments(source):
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = token.string.lstrip("#").strip()
    except (tokenize.TokenError, IndentationError):  # something follows the code that is no part of it
        pass
    return found


def resolve(node, source, context_filepath, context_lineno, context_col_offset):
    """Notes the origins of a tree; |source| is its text, which begins at the given place of a file."""
    OriginResolver(source.split("\n"), _comments(source), context_lineno, context_col_offset, context_filepath).visit(node)


def resolve_entity(node, source, entity):
    """Notes the origins of the tree of a function."""
    import inspect
    lines, first = inspect_utils.getimmediatelines(entity)
    row = lines[0]
    resolve(node, source, inspect.getsourcefile(inspect_utils._defined(entity)), first, len(row) - len(row.lstrip()))


def copy_origin(from_node, to_node):
    """Gives a tree, or several, the origin of another node."""
    origin = anno.Basic.ORIGIN.of(from_node)
    if origin is None:
        return
    for tree in to_node if isinstance(to_node, (list, tuple)) else [to_node]:
        for node in ast.walk(tree):
            anno.setanno(node, anno.Basic.ORIGIN, origin)
