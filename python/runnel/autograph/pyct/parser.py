"""From source to trees and back."""

import ast
import inspect
import io
import linecache
import tokenize

from runnel.autograph.pyct import errors, inspect_utils, syntax


def _string_lines(code):
    """Returns (the first indentation, the lines that begin inside a string)."""
    indentation, inside, started = None, set(), []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            kind = tokenize.tok_name[token.type]
            if kind == "INDENT" and indentation is None:
                indentation = token.string
            elif indentation is None and kind not in ("NL", "COMMENT", "NEWLINE", "ENCODING"):
                indentation = ""
            if kind == "STRING":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
            elif kind == "FSTRING_START":  # from Python 3.12
                started.append(token.start[0])
            elif kind == "FSTRING_END":
                inside.update(range(started.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, IndentationError):  # the rest is no complete program
        pass
    return indentation or "", inside


def dedent_block(code_string):
    """Removes the indentation of the first line from all lines; comments may have less, strings stay as they are."""
    indentation, inside = _string_lines(code_string)
    rows = []
    for number, row in enumerate(code_string.split("\n"), 1):
        width = len(row) - len(row.lstrip())
        rows.append(row if number in inside else row[min(width, len(indentation)):])
    return "\n".join(rows)


def parse(src, preamble_len=0, single_node=True):
    """Returns the statements of a source, or its only one; |preamble_len| statements at the start are left out."""
    body = syntax.parse(src).body[preamble_len:]
    if not single_node:
        return body
    if len(body) != 1:
        raise ValueError("expected exactly one node, got %d" % len(body))
    return body[0]


def parse_expression(src):
    """Returns the expression that a source is."""
    src = src.strip()
    node = parse(src)
    if not isinstance(node, syntax.Expr):
        raise ValueError("expected a single expression, got %r" % src)
    return node.value


def parse_entity(entity, future_features):
    """Returns (tree, source) of a function, lambda or class.

    |future_features| are the names imported from __future__ where it is defined; none of them changes how Python 3 parses.
    """
    del future_features
    try:
        if inspect_utils.islambda(entity):
            return _parse_lambda(entity)
        source = dedent_block(inspect_utils.getimmediatesource(entity))
    except (OSError, TypeError) as error:
        raise errors.InaccessibleSourceCodeError(
            "Unable to locate the source code of %s. Functions that were typed into a shell of Python or made by exec may have none: define them "
            "in a file, or decorate what calls them with tf.autograph.experimental.do_not_convert. The reason: %s" % (entity, error)) from None
    try:
        return parse(source), source
    except (SyntaxError, ValueError) as error:
        raise errors.UnsupportedLanguageElementError("Unable to parse the source code of %s: %s\n%s" % (entity, error, source)) from None


def _slice(lines, node):
    """Returns the text of a node. Columns of trees are bytes."""
    rows = [row.encode() for row in lines[node.lineno - 1:node.end_lineno]]
    rows[-1] = rows[-1][:node.end_col_offset]
    rows[0] = rows[0][node.col_offset:]
    return b"".join(rows).decode()


def _signature(arguments):
    names = [[name.id for name in group] for group in (getattr(arguments, "posonlyargs", []) + arguments.args, arguments.kwonlyargs)]
    return (*names, *(None if one is None else one.id for one in (arguments.vararg, arguments.kwarg)))


def _signature_of(code):
    spec = inspect.getargs(code)
    count = code.co_argcount
    return spec.args[:count], spec.args[count:], spec.varargs, spec.varkw


def _parse_lambda(function):
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise OSError("there is no file %s" % code.co_filename)
    wanted = _signature_of(code)
    found = [node for node in ast.walk(syntax.parse("".join(lines)))
             if isinstance(node, syntax.Lambda) and node.lineno == code.co_firstlineno and _signature(node.args) == wanted]
    if not found:
        raise errors.UnsupportedLanguageElementError("could not find the lambda %s in line %d of %s" % (function, code.co_firstlineno, code.co_filename))
    sources = [_slice(lines, node) for node in found]
    if len(found) > 1:
        raise errors.UnsupportedLanguageElementError(
            "found multiple definitions with identical signatures at the location of %s. Put each lambda into a line of its own, or give their "
            "arguments different names. The matching definitions are:\n%s" % (function, "\n".join("Match %d:\n%s\n" % row for row in enumerate(sources))))
    ast.increment_lineno(found[0], 1 - found[0].lineno)
    return found[0], sources[0]


def unparse(node, indentation=None, include_encoding_marker=True):
    """Returns the source of a node or of several. |indentation| is not used: blocks are indented by four spaces."""
    del indentation
    text = "\n".join(_text(one) for one in (node if isinstance(node, (list, tuple)) else [node]))
    return "# coding=utf-8\n" + text if include_encoding_marker else text


def _text(node):
    return ast.unparse(ast.fix_missing_locations(syntax.gast_to_ast(node)))
