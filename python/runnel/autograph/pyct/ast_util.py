"""Copies, renames, compares and walks trees."""

import ast

from runnel.autograph.pyct import anno, parser, syntax

_PLACES = ("lineno", "col_offset", "end_lineno", "end_col_offset")


class CleanCopier:
    """Copies trees without anything that was added to them, except notes under chosen keys."""

    def __init__(self, preserve_annos):
        self._preserved = preserve_annos or ()

    def copy(self, node):
        """Returns a copy of a node, a list or a value."""
        if isinstance(node, (list, tuple)):
            return type(node)(self.copy(one) for one in node)
        if not isinstance(node, ast.AST):
            return node
        made = type(node)(**{f: self.copy(getattr(node, f)) for f in node._fields if hasattr(node, f) and not f.startswith("__")})
        for place in _PLACES:
            if hasattr(node, place):
                setattr(made, place, getattr(node, place))
        for key in self._preserved:
            anno.copyanno(node, made, key)
        return made


def copy_clean(node, preserve_annos=None):
    """Returns a copy of a tree; |preserve_annos| are the keys of notes that it keeps."""
    return CleanCopier(preserve_annos).copy(node)


class SymbolRenamer(ast.NodeTransformer):
    """Renames what has certain QNs."""

    def __init__(self, name_map):
        self._names = name_map
        self._texts = {str(old): str(new) for old, new in name_map.items()}

    def _renamed(self, node):
        qn = anno.getanno(node, anno.Basic.QN, None)
        if qn not in self._names:
            return self.generic_visit(node)
        made = syntax.Name(str(self._names[qn]), ctx=node.ctx, annotation=getattr(node, "annotation", None), type_comment=None)
        ast.copy_location(made, node)
        for key in anno.keys(node):
            anno.copyanno(node, made, key)
        return made

    visit_Name = visit_Attribute = _renamed

    def _strings(self, node):
        node.names = [self._texts.get(name, name) for name in node.names]
        return node

    visit_Global = visit_Nonlocal = _strings

    def visit_FunctionDef(self, node):
        node.name = self._texts.get(node.name, node.name)
        return self.generic_visit(node)


def rename_symbols(node, name_map):
    """Renames in a tree, or in several: {QN: QN}."""
    renamer = SymbolRenamer(name_map)
    return type(node)(map(renamer.visit, node)) if isinstance(node, (list, tuple)) else renamer.visit(node)


def keywords_to_dict(keywords):
    """Returns the expression of a dict with the keyword arguments of a call."""
    return syntax.Dict(keys=[syntax.constant(k.arg) for k in keywords], values=[k.value for k in keywords])


def _is_wildcard(pattern):
    if isinstance(pattern, (list, tuple)) and len(pattern) == 1:
        pattern = pattern[0]
    return pattern == "_" or isinstance(pattern, syntax.Name) and pattern.id == "_"


def _fits(value, pattern):
    if _is_wildcard(pattern):
        return True
    if not value and not pattern and not (isinstance(value, (str, int)) or isinstance(pattern, (str, int))):
        return True  # None, or an empty list
    if isinstance(pattern, (list, tuple)):
        return isinstance(value, (list, tuple)) and len(value) == len(pattern) and all(map(_fits, value, pattern))
    if not isinstance(pattern, ast.AST):
        return value == pattern
    return type(value) is type(pattern) and all(_fits(getattr(value, f, None), getattr(pattern, f, None)) for f in pattern._fields)


def matches(node, pattern):
    """Tells whether a tree has the shape of a pattern, a tree or a source, in which `_` stands for any name, expression or arguments."""
    if isinstance(pattern, str):
        pattern = parser.parse_expression(pattern)
    return type(node) is type(pattern) and all(_fits(getattr(node, f, None), getattr(pattern, f, None)) for f in pattern._fields)


def apply_to_single_assignments(targets, values, apply_fn):
    """Calls apply_fn(target, value) for each plain assignment that an assignment to |targets| is made of."""
    for target in targets if isinstance(targets, (list, tuple)) else [targets]:
        if not isinstance(target, (syntax.Tuple, syntax.List)):
            apply_fn(target, values)
            continue
        for i, element in enumerate(target.elts):
            if isinstance(values, (syntax.Tuple, syntax.List)):
                value = values.elts[i]
            else:
                value = syntax.Subscript(values, syntax.constant(i), ctx=syntax.Store())
            apply_to_single_assignments(element, value, apply_fn)


def _check_same(one, other):
    if type(one) is not type(other):
        raise ValueError("inconsistent nodes: %s and %s" % (type(one).__name__, type(other).__name__))
    if isinstance(one, (list, tuple)) and len(one) != len(other):
        raise ValueError("inconsistent lists: %d and %d nodes" % (len(one), len(other)))
    if not isinstance(one, (ast.AST, list, tuple)) and one != other:
        raise ValueError("inconsistent values: %r and %r" % (one, other))


def parallel_walk(node, other):
    """Yields the pairs of nodes, and of values, at the same places of two trees. Raises ValueError where they differ."""
    waiting = [(node, other)]
    while waiting:
        one, two = waiting.pop()
        _check_same(one, two)
        if isinstance(one, (list, tuple)):
            waiting += zip(one, two)
            continue
        if one is None:
            continue
        yield one, two
        if isinstance(one, ast.AST):
            waiting += ((getattr(one, f, None), getattr(two, f, None)) for f in one._fields if f not in ("ctx", "type_params"))
