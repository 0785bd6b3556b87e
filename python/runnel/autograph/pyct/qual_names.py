"""Qualified names: what code calls a value, such as `a`, `a.b` or `a[b.c]`."""

import ast
import collections

from runnel.autograph.pyct import anno, syntax


class CallerMustSetThis:
    """Stands for a context that the caller has to fill in."""


class Symbol(collections.namedtuple("Symbol", ["name"])):
    """A plain name."""


class Literal(collections.namedtuple("Literal", ["value"])):
    """A literal in a subscript."""

    def __str__(self):
        return repr(self.value)

    def __repr__(self):
        return repr(self.value)


class QN:
    """A qualified name: a base, and perhaps one attribute or subscript of it. The base may itself be qualified."""

    __slots__ = ("qn", "_kind", "_text", "__weakref__")

    def __init__(self, base, attr=None, subscript=None):
        if attr is not None and subscript is not None:
            raise ValueError("a QN has an attribute or a subscript, not both: %s, %s" % (attr, subscript))
        last = attr if attr is not None else subscript
        self._kind = "attr" if attr is not None else "subscript" if subscript is not None else "name"
        if last is None:
            if not isinstance(base, (str, Literal, Symbol)):
                raise ValueError("a simple QN is a string or a literal, not %r" % (base,))
            self.qn = (base,)
        else:
            if not isinstance(base, QN):
                raise ValueError("only a QN has attributes and subscripts, not %r" % (base,))
            self.qn = (base, last)
        form = {"name": "%s", "attr": "%s.%s", "subscript": "%s[%s]"}[self._kind]
        self._text = form % tuple(map(str, self.qn))

    def is_symbol(self):
        """Tells whether the base is a name, not a literal."""
        return isinstance(self.qn[0], str)

    def is_simple(self):
        """Tells whether there is nothing but the base."""
        return self._kind == "name"

    def is_composite(self):
        """Tells whether there is an attribute or a subscript."""
        return self._kind != "name"

    def has_subscript(self):
        """Tells whether the last part is a subscript."""
        return self._kind == "subscript"

    def has_attr(self):
        """Tells whether the last part is an attribute."""
        return self._kind == "attr"

    @property
    def attr(self):
        """The last part, which is an attribute."""
        if not self.has_attr():
            raise ValueError("%s has no attribute at its end" % self)
        return self.qn[1]

    @property
    def parent(self):
        """The QN before the last part."""
        if self.is_simple():
            raise ValueError("%s is no part of anything" % self)
        return self.qn[0]

    @property
    def owner_set(self):
        """The QNs that this one is a part of."""
        return set() if self.is_simple() else {self.parent} | self.parent.owner_set

    @property
    def support_set(self):
        """The plain names that this QN is made of."""
        if self.is_simple():
            return {self} if self.is_symbol() else set()
        last = self.qn[1]
        return self.parent.support_set | (last.support_set if isinstance(last, QN) else set())

    def __hash__(self):
        return hash((self._kind, self.qn))

    def __eq__(self, other):
        return isinstance(other, QN) and self._kind == other._kind and self.qn == other.qn

    def __lt__(self, other):
        return str(self) < str(other)

    def __gt__(self, other):
        return str(self) > str(other)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def ssf(self):
        """Returns a text that is a name in Python."""
        parts = [part.ssf() if isinstance(part, QN) else str(getattr(part, "value", part)) for part in self.qn]
        return ("_sub_" if self.has_subscript() else "_").join(parts)

    def ast(self):
        """Returns the expression. Its contexts are to be set."""
        if self.has_attr():
            return syntax.Attribute(value=self.parent.ast(), attr=self.qn[1], ctx=CallerMustSetThis)
        if self.has_subscript():
            last = self.qn[1]
            index = last.ast() if isinstance(last, QN) else syntax.Name(last, ctx=CallerMustSetThis, annotation=None, type_comment=None)
            return syntax.Subscript(value=self.parent.ast(), slice=index, ctx=CallerMustSetThis)
        if isinstance(self.qn[0], Literal):
            return syntax.constant(self.qn[0].value)
        return syntax.Name(str(self.qn[0]), ctx=CallerMustSetThis, annotation=None, type_comment=None)


class QnResolver(ast.NodeTransformer):
    """Notes the QNs of names, attributes and subscripts."""

    def visit_Name(self, node):
        node = self.generic_visit(node)
        anno.setanno(node, anno.Basic.QN, QN(node.id))
        return node

    def visit_Attribute(self, node):
        node = self.generic_visit(node)
        base = anno.getanno(node.value, anno.Basic.QN, None)
        if base is not None:
            anno.setanno(node, anno.Basic.QN, QN(base, attr=node.attr))
        return node

    def visit_Subscript(self, node):
        node = self.generic_visit(node)
        base = anno.getanno(node.value, anno.Basic.QN, None)
        index = node.slice
        last = QN(Literal(index.value)) if isinstance(index, syntax.Constant) else anno.getanno(index, anno.Basic.QN, None)
        if base is not None and last is not None:
            anno.setanno(node, anno.Basic.QN, QN(base, subscript=last))
        return node


def resolve(node):
    """Notes the QNs in a tree. Returns the tree."""
    return QnResolver().visit(node)


def from_str(qn_str):
    """Returns the QN that a text is."""
    node = resolve(syntax.parse(qn_str.strip()).body[0].value)
    return anno.getanno(node, anno.Basic.QN)
