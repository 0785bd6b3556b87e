"""Kinds of literals in trees."""

from runnel.autograph.pyct import syntax

GAST2 = False  # the time when each kind of literal had a class of its own
GAST3 = True


def is_constant(node):
    """Tells whether a node is a literal number, string, None, True, False or `...`."""
    return isinstance(node, syntax.Constant)


def is_literal(node):
    """Tells whether a node is a literal, or a Name that says True, False or None."""
    return is_constant(node) or isinstance(node, syntax.Name) and node.id in ("True", "False", "None")


def is_ellipsis(node):
    """Tells whether a node is `...`."""
    return is_constant(node) and node.value is Ellipsis
