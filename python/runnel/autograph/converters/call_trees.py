"""Replaces calls: `ag__.converted_call(f, (arguments,), keywords or None, fscope)`."""

from runnel.autograph.converters import functions
from runnel.autograph.core import converter
from runnel.autograph.pyct import anno, syntax, templates

_PLAIN = ("super", "breakpoint")  # they look at their caller


class _Function:
    no_root = True

    def __init__(self):
        self.scope = None


class CallTreeTransformer(converter.Base):
    """Replaces the calls of a tree, but not those of decorators, defaults and context managers."""

    def visit_Lambda(self, node):
        if not anno.hasanno(node, functions.SCOPE_NAME):
            return self.generic_visit(node)
        with self.state[_Function] as state:
            state.scope = anno.getanno(node, functions.SCOPE_NAME)
            return self.generic_visit(node)

    def visit_FunctionDef(self, node):
        with self.state[_Function] as state:
            state.scope = anno.getanno(node, functions.SCOPE_NAME, None)
            node.body = self.visit_block(node.body)
            return node

    def visit_With(self, node):
        node.body = self.visit_block(node.body)
        return node

    def _keywords(self, keywords):
        if not keywords:
            return syntax.constant(None)
        made = templates.replace_as_expression("dict()")
        made.keywords = keywords
        return made

    def visit_Call(self, node):
        func = node.func
        node = self.generic_visit(node)
        if isinstance(func, syntax.Name) and func.id in _PLAIN or isinstance(func, syntax.Attribute) and func.attr == "set_trace":
            return node
        if isinstance(func, syntax.Attribute) and isinstance(func.value, syntax.Name) and func.value.id in ("ag__", *self._scopes()):
            return node
        scope = self.state[_Function].scope if self.state[_Function].level else None
        return templates.replace_as_expression(
            "ag__.converted_call(func, args, keywords, scope)", func=node.func, args=syntax.Tuple(elts=node.args, ctx=syntax.Load()),
            keywords=self._keywords(node.keywords), scope=scope if scope is not None else syntax.constant(None))

    def _scopes(self):
        return [state.scope for state in self.state[_Function]]


def transform(node, ctx):
    """Returns a tree whose calls are converted when they happen."""
    return CallTreeTransformer(ctx).visit(node)
