"""Trees from text with placeholders."""

import ast
import textwrap

from runnel.autograph.pyct import anno, ast_util, parser, qual_names, syntax

_KEPT = {anno.Basic.QN, anno.Basic.ORIGIN, anno.Basic.SKIP_PROCESSING, anno.Basic.DIRECTIVES, anno.Basic.EXTRA_LOOP_TEST, anno.Static.DEFINED_VARS_IN,
         anno.Static.ORIG_DEFINITIONS, anno.Static.DEFINITIONS, anno.Static.SCOPE}

# Fields that are assigned to, by class of the node.
_ASSIGNED = {"Assign": ("targets",), "AugAssign": ("target",), "AnnAssign": ("target",), "For": ("target",), "AsyncFor": ("target",),
             "comprehension": ("target",), "withitem": ("optional_vars",), "NamedExpr": ("target",), "ExceptHandler": ("name",)}


def set_contexts(node, context=syntax.Load):
    """Sets the contexts of all names in a tree, or a list, by where they are; |context| is that of the node itself."""
    if isinstance(node, (list, tuple)):
        for one in node:
            set_contexts(one, context)
        return
    if not isinstance(node, ast.AST):
        return
    if "ctx" in node._fields:
        node.ctx = context()
    kind = type(node).__name__
    for field in node._fields:
        if kind in ("Tuple", "List", "Starred"):
            inner = context
        elif kind == "Delete":
            inner = syntax.Del
        elif kind == "arguments" and field not in ("defaults", "kw_defaults"):
            inner = syntax.Param
        else:
            inner = syntax.Store if field in _ASSIGNED.get(kind, ()) else syntax.Load
        if field != "ctx":
            set_contexts(getattr(node, field, None), inner)


def _as_nodes(value):
    """Returns a replacement as a node, or a list of nodes."""
    if isinstance(value, str):
        return syntax.load(value) if value.isidentifier() else parser.parse_expression(value)
    if isinstance(value, qual_names.QN):
        return value.ast()
    if isinstance(value, (list, tuple)):
        return [_as_nodes(one) for one in value]
    return value


class _Replacer(ast.NodeTransformer):
    """Puts replacements, which are copied at each use, in place of names."""

    def __init__(self, replacements):
        self._replacements = replacements

    def _copy(self, key):
        return ast_util.copy_clean(self._replacements[key], preserve_annos=_KEPT)

    def _name(self, key):
        value = self._replacements[key]
        if not isinstance(value, syntax.Name):
            raise ValueError("%r stands for a name, which %r is not" % (key, value))
        return value.id

    def visit_Expr(self, node):
        if not isinstance(node.value, syntax.Name) or node.value.id not in self._replacements:
            return self.generic_visit(node)
        made = self._copy(node.value.id)
        return syntax.Expr(value=made) if isinstance(made, ast.expr) else made

    def visit_keyword(self, node):
        if node.arg not in self._replacements:
            return self.generic_visit(node)
        made = self._copy(node.arg)
        if isinstance(made, syntax.Name):
            node.arg = made.id
            return self.generic_visit(node)
        if not isinstance(made, list) or not made or not all(isinstance(one, syntax.keyword) for one in made):
            raise ValueError("%r stands for keyword arguments, which %r is not" % (node.arg, made))
        return made

    def visit_FunctionDef(self, node):
        node = self.generic_visit(node)
        if node.name in self._replacements:
            node.name = self._name(node.name)
        return node

    def visit_Attribute(self, node):
        node = self.generic_visit(node)
        if node.attr in self._replacements:
            node.attr = self._name(node.attr)
        return node

    def visit_Name(self, node):
        if node.id not in self._replacements:
            return node
        made = self._copy(node.id)
        return made[0] if isinstance(made, list) and len(made) == 1 else made


def replace(template, **replacements):
    """Returns the statements of a template. Names in it that are keys of |replacements| become what those are.

    A replacement is a name, a QN, a node or a list of these. A name that is a statement may become statements, one in a list or a call several
    expressions, and `name=None` in a call several keyword arguments.
    """
    if not isinstance(template, str):
        raise ValueError("a template is a string, not %r" % type(template))
    nodes = {key: _as_nodes(value) for key, value in replacements.items()}
    made = []
    for statement in parser.parse(textwrap.dedent(template), preamble_len=0, single_node=False):
        new = _Replacer(nodes).visit(statement)
        made += new if isinstance(new, list) else [new] if new is not None else []
    set_contexts(made)
    return [qual_names.resolve(node) for node in made]


def replace_as_expression(template, **replacements):
    """Returns the expression that a template of one line is."""
    made = replace(template, **replacements)
    if len(made) != 1:
        raise ValueError("the template is %d statements, not an expression: %s" % (len(made), template))
    return made[0].value if isinstance(made[0], syntax.Expr) else made[0]
