"""Finds the source of a function and parses it."""

import ast
import inspect
import linecache
import textwrap


class NoSource(ValueError):
    """The source of a function cannot be found or is not unique."""


def parse(function):
    """Returns a FunctionDef of a function or lambda, with the line numbers of its file."""
    code = function.__code__
    try:
        linecache.checkcache(code.co_filename)
        lines, first = inspect.getsourcelines(code)  # of the function itself, not of what it wraps
    except (OSError, TypeError) as error:
        raise NoSource("the source of %r is not there: %s" % (function, error)) from None
    if code.co_name == "<lambda>":
        return _lambda(code, lines, first)
    try:
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except SyntaxError as error:
        raise NoSource("the source of %r cannot be parsed: %s" % (function, error)) from None
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise NoSource("%r is not defined where its code says" % (function,))
    ast.increment_lineno(node, first - 1)
    return node


def _lambda(code, lines, first):
    """Returns a FunctionDef for the lambda that has this code."""
    found = [node for node in _lambdas(lines, first, code.co_filename) if _is_code_of(node, code)]
    if len({ast.dump(node) for node in found}) != 1:
        raise NoSource("the source of the lambda in line %d of %s is not unique" % (first, code.co_filename))
    node = found[0]
    body = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(ast.FunctionDef(
        name="lambda_", args=node.args, body=[body], decorator_list=[], returns=None, type_comment=None, type_params=[]), node)


def _lambdas(lines, first, filename):
    """Returns the lambdas that begin in the given lines."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)) or "".join(lines))
    except SyntaxError:
        tree = _partial(lines, first)
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno >= first and node.lineno < first + len(lines)]


def _partial(lines, first):
    """Parses lines of which only a part may be a statement."""
    text = textwrap.dedent("".join(lines)).strip()
    for candidate in (text, "(%s)" % text, text.rstrip(",)"), "(%s)" % text.rstrip(",)")):
        try:
            return ast.increment_lineno(ast.parse(candidate), first - 1)
        except SyntaxError:
            continue
    raise NoSource("the lambda in line %d cannot be parsed" % first)


def _is_code_of(node, code):
    arguments = node.args
    names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    count = code.co_argcount + code.co_kwonlyargcount
    if node.lineno != code.co_firstlineno or names != list(code.co_varnames[:count]):
        return False
    positions = getattr(code, "co_positions", None)
    if positions is not None:  # exact, from Python 3.11
        columns = [p[2] for p in positions() if p[0] == node.body.lineno and p[2] is not None and p[3] != 0]
        inside = all(node.col_offset <= c for c in columns) and min(columns, default=0) >= node.body.col_offset - 1
        ends = [(p[1], p[3]) for p in positions() if p[1] is not None and p[3] is not None]
        return inside and max(ends, default=(0, 0)) <= (node.end_lineno, node.end_col_offset)
    return {n.id for n in ast.walk(node.body) if isinstance(n, ast.Name)} >= set(code.co_freevars)


# --- Private names, `__x` inside a class

class _Mangler(ast.NodeTransformer):
    """Gives private names the form that they have in compiled code; classes inside do so themselves."""

    def __init__(self, known):
        self._known = known

    def _name(self, name):
        if name is None or not name.startswith("__") or name.endswith("__"):
            return name
        return next((known for known in self._known if known.startswith("_") and known.endswith(name) and known != name), name)

    def visit_ClassDef(self, node):
        return node

    def generic_visit(self, node):
        for field in ("id", "attr", "arg"):
            if isinstance(getattr(node, field, None), str):
                setattr(node, field, self._name(getattr(node, field)))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._name(name) for name in node.names]
        return super().generic_visit(node)


def _names(code):
    """Returns all names in the code of a function and of those inside it."""
    found = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    for constant in code.co_consts:
        if isinstance(constant, type(code)) and constant.co_flags & inspect.CO_OPTIMIZED:  # not the body of a class
            found |= _names(constant)
        elif isinstance(constant, tuple):  # names of keyword arguments
            found.update(name for name in constant if isinstance(name, str))
    return found


def mangle(node, code):
    """Gives the private names of a method's tree, `self.__x`, the form that they have in its code: it is compiled outside of its class."""
    known = sorted(name for name in _names(code) if "__" in name)
    return _Mangler(known).visit(node) if known else node
