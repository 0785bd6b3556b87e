"""Nodes of syntax trees, in the shape of the package gast, which is used if it is installed.

gast's trees are Python's, but a parameter and the name of a caught exception are Names like any other.
"""

import ast
import functools


class _FromPython(ast.NodeTransformer):
    def visit_Name(self, node):
        return ast.copy_location(_OwnNodes.Name(node.id, node.ctx), node)

    def visit_arg(self, node):
        annotation = node.annotation and self.visit(node.annotation)
        return ast.copy_location(_OwnNodes.Name(node.arg, _OwnNodes.Param(), annotation, node.type_comment), node)

    def visit_ExceptHandler(self, node):
        self.generic_visit(node)
        if node.name is not None:
            node.name = ast.copy_location(_OwnNodes.Name(node.name, ast.Store()), node)
        return node


def _to_python(node):
    """Returns a tree, a list or a value in Python's own nodes, without notes."""
    if isinstance(node, list):
        return [_to_python(one) for one in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Name) and isinstance(node.ctx, _OwnNodes.Param):
        made = ast.arg(arg=node.id, annotation=_to_python(getattr(node, "annotation", None)))
    elif isinstance(node, ast.Name):
        made = ast.Name(id=node.id, ctx=node.ctx)
    else:
        made = type(node)(**{field: _to_python(getattr(node, field)) for field in node._fields if hasattr(node, field)})
        if isinstance(made, ast.ExceptHandler) and isinstance(made.name, ast.Name):
            made.name = made.name.id
    return ast.copy_location(made, node)


class _OwnNodes:
    """Stands for gast: Python's nodes, and two of its own."""

    class Param(ast.expr_context):
        """The context of a Name that is a parameter."""

    class Name(ast.Name):
        """A name, with the annotation that it has as a parameter."""

        _fields = ("id", "ctx", "annotation", "type_comment")

        def __init__(self, id=None, ctx=None, annotation=None, type_comment=None, **places):  # noqa: A002
            super().__init__(id=id, ctx=ctx, **places)
            self.annotation, self.type_comment = annotation, type_comment

    def __getattr__(self, name):
        return getattr(ast, name)

    @staticmethod
    def parse(source):
        """Returns the tree of a program."""
        return _FromPython().visit(ast.parse(source))

    @staticmethod
    def gast_to_ast(node):
        """Returns the tree as Python's own nodes."""
        return _to_python(node)


@functools.lru_cache(None)
def _nodes():
    try:
        import gast
    except ImportError:
        return _OwnNodes()
    return gast


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_nodes(), name)


def load(name):
    """Returns the node that reads a variable."""
    return _nodes().Name(name, ctx=_nodes().Load(), annotation=None, type_comment=None)


def constant(value):
    """Returns the node of a literal."""
    return _nodes().Constant(value, kind=None)


def parameters(arguments):
    """Returns the Names of a function's parameters, in the order of its signature."""
    found = [*getattr(arguments, "posonlyargs", ()), *arguments.args]
    found += [arguments.vararg] if arguments.vararg else []
    found += arguments.kwonlyargs
    return found + ([arguments.kwarg] if arguments.kwarg else [])


FUNCTIONS = ("FunctionDef", "AsyncFunctionDef", "Lambda")


def is_function(node):
    """Tells whether a node is a function of any kind."""
    return type(node).__name__ in FUNCTIONS
