"""A-normal form: the operands of every operation are names or literals; all else gets a name of its own before."""

import ast
import collections
import itertools

from runnel.autograph.pyct import syntax, templates, transformer


class DummyGensym:
    """Makes names tmp_1001, tmp_1002 and so on."""

    def __init__(self):
        self._numbers = itertools.count(1001)

    def new_name(self, stem="tmp"):
        """Returns the next name."""
        return "%s_%d" % (stem, next(self._numbers))


def REPLACE(parent, field, child):
    """A directive: the child gets a name of its own."""
    return True


def LEAVE(parent, field, child):
    """A directive: the child stays where it is."""
    return False


ANY = object()  # as part of a pattern: everything


class ASTEdgePattern(collections.namedtuple("ASTEdgePattern", ["parent", "field", "child"])):
    """Children in a field of a parent: the classes of both, and the name of the field. Each may be ANY."""

    __slots__ = ()

    def matches(self, parent, field, child):
        """Tells whether a child is meant."""
        return ((self.parent is ANY or isinstance(parent, self.parent)) and (self.field is ANY or field == self.field)
                and (self.child is ANY or isinstance(child, self.child)))


def _default_config():
    return [(ASTEdgePattern(ANY, ANY, (syntax.Constant, syntax.Name)), LEAVE), (ANY, REPLACE)]


# What may not be taken out of an expression, because it runs later, not at all, or several times.
_LATER = {"BoolOp": "and and or", "IfExp": "conditional expressions", "Lambda": "lambdas", "ListComp": "comprehensions", "SetComp": "comprehensions",
          "DictComp": "comprehensions", "GeneratorExp": "comprehensions", "Await": "await", "FormattedValue": "f-strings", "JoinedStr": "f-strings"}


class AnfTransformer(transformer.Base):
    """Gives parts of expressions names of their own, as the first of the configured rules says: [(pattern, directive)]."""

    def __init__(self, ctx, config):
        super().__init__(ctx)
        self._config = _default_config() if config is None else config
        self._names = DummyGensym()
        self._pending = []

    # Parts

    def _is_wanted(self, parent, field, child):
        for pattern, directive in self._config:
            if pattern is ANY or pattern.matches(parent, field, child):
                return directive(parent, field, child)
        return False

    def _named(self, parent, field, child):
        """Returns what stands for a child from now on."""
        if isinstance(child, list):
            return [self._named(parent, field, one) for one in child]
        if isinstance(child, (syntax.keyword, syntax.Starred)):
            child.value = self._named(parent, field, child.value)
            return child
        if isinstance(child, syntax.withitem):
            child.context_expr = self._named(child, "context_expr", child.context_expr)
            return child
        if isinstance(child, syntax.Slice):
            for part in ("lower", "upper", "step"):
                setattr(child, part, self._named(child, part, getattr(child, part)))
            return child
        if not isinstance(child, ast.expr) or isinstance(child, syntax.Name) or not isinstance(getattr(child, "ctx", syntax.Load()), syntax.Load):
            return child
        if not self._is_wanted(parent, field, child):
            return child
        name = self._names.new_name()
        self._pending.append(templates.replace("name = value", name=name, value=child)[0])
        return syntax.load(name)

    def _name_parts(self, node):
        for field in node._fields:
            setattr(node, field, self._named(node, field, getattr(node, field, None)))

    # Expressions

    def generic_visit(self, node):
        if not isinstance(node, ast.expr) or isinstance(node, syntax.Name):
            return super().generic_visit(node)
        kind = type(node).__name__
        if kind in _LATER:
            before = len(self._pending)
            if kind != "Lambda":
                super().generic_visit(node)
                self._name_parts(node)
            if len(self._pending) != before:
                raise ValueError("%s with parts that are not names or literals have no A-normal form" % _LATER[kind])
            return node
        super().generic_visit(node)
        if isinstance(node, syntax.Starred):  # an argument, whose value its call names
            return node
        if not isinstance(getattr(node, "ctx", None), (syntax.Store, syntax.Del)) or isinstance(node, (syntax.Attribute, syntax.Subscript)):
            self._name_parts(node)
        return node

    # Statements

    def _statement(self, node, fields=()):
        """Transforms a statement; the values of these fields get names, too."""
        before, self._pending = self._pending, []
        for field in node._fields:
            value = getattr(node, field, None)
            if field in ("body", "orelse", "finalbody", "handlers"):
                continue
            if isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
            elif isinstance(value, list):
                setattr(node, field, [self.visit(one) if isinstance(one, ast.AST) else one for one in value])
        for field in fields:
            setattr(node, field, self._named(node, field, getattr(node, field)))
        made, self._pending = self._pending, before
        for field in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, self.visit_block(getattr(node, field)))
        for handler in getattr(node, "handlers", ()):
            handler.body = self.visit_block(handler.body)
        return [*made, node] if made else node

    def visit_Assign(self, node):
        return self._statement(node)

    visit_AugAssign = visit_Delete = visit_Try = visit_Assign

    def visit_Expr(self, node):
        return self._statement(node)

    def visit_Return(self, node):
        return self._statement(node, ["value"])

    def visit_Raise(self, node):
        return self._statement(node, ["exc", "cause"])

    def visit_If(self, node):
        return self._statement(node, ["test"])

    def visit_For(self, node):
        return self._statement(node, ["iter"])

    visit_AsyncFor = visit_For

    def visit_With(self, node):
        return self._statement(node, ["items"])

    visit_AsyncWith = visit_With

    def _repeated(self, node, what):
        made = self._statement(node, [field for field in ("test", "msg") if hasattr(node, field)])
        if isinstance(made, list):
            raise ValueError("%s with a test that is not a name or a literal has no A-normal form" % what)
        return made

    def visit_While(self, node):
        return self._repeated(node, "a while")

    def visit_Assert(self, node):
        return self._repeated(node, "an assert")

    def visit_FunctionDef(self, node):
        node.body = self.visit_block(node.body)
        return node


def transform(node, ctx, config=None):
    """Returns a tree in A-normal form. |config| is [(ASTEdgePattern or ANY, directive)]; by default all but names and literals is named."""
    return AnfTransformer(ctx, config).visit(node)
