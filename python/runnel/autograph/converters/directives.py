"""Takes directives (lang.directives) out of the code, and notes what they say at what they are about."""

import inspect
import types

from runnel.autograph.core import converter
from runnel.autograph.lang import directives
from runnel.autograph.pyct import anno, syntax

STATIC_VALUE = "static_value"  # the note of a name, or an attribute of a module, whose value is known


class _Loop:
    def __init__(self):
        self.node, self.count = None, 0


def _arguments(call, function):
    """Returns {parameter: expression} of a call; keywords may be unknown."""
    names = list(inspect.signature(function).parameters)
    if len(call.args) > len(names):
        raise TypeError("%s takes %d arguments, not %d" % (function.__name__, len(names), len(call.args)))
    return {**dict(zip(names, call.args)), **{keyword.arg: keyword.value for keyword in call.keywords}}


class DirectivesTransformer(converter.Base):
    """Finds the directives of a tree."""

    def _set_of_symbol(self, call, function):
        found = _arguments(call, function)
        target = call.args[0] if call.args else found.pop("entity")
        found.pop("entity", None)
        for definition in anno.getanno(target, anno.Static.ORIG_DEFINITIONS, ()):
            definition.directives[function] = found

    def _set_of_loop(self, call, function):
        loop = self.state[_Loop]
        if loop.node is None:
            raise ValueError("%s must be used inside a statement" % function.__name__)
        if loop.count > 1:
            raise ValueError("%s must be the first statement in the loop block" % function.__name__)
        known = anno.getanno(loop.node, anno.Basic.DIRECTIVES, {})
        anno.setanno(loop.node, anno.Basic.DIRECTIVES, {**known, function: _arguments(call, function)})

    def visit_Name(self, node):
        namespace = self.ctx.info.namespace
        if isinstance(node.ctx, syntax.Load) and not anno.getanno(node, anno.Static.DEFINITIONS, ()) and node.id in namespace:
            anno.setanno(node, STATIC_VALUE, namespace[node.id])
        return node

    def visit_Attribute(self, node):
        node = self.generic_visit(node)
        owner = anno.getanno(node.value, STATIC_VALUE, None)
        if isinstance(owner, types.ModuleType) and hasattr(owner, node.attr):  # other objects may do something when they are asked
            anno.setanno(node, STATIC_VALUE, getattr(owner, node.attr))
        return node

    def visit_Expr(self, node):
        node = self.generic_visit(node)
        function = anno.getanno(node.value.func, STATIC_VALUE, None) if isinstance(node.value, syntax.Call) else None
        if function is directives.set_element_type:
            self._set_of_symbol(node.value, function)
            return None
        if function is directives.set_loop_options:
            self._set_of_loop(node.value, function)
            return None
        return node

    def _loop(self, node):
        with self.state[_Loop] as state:
            state.node = node
            made = []
            for statement in node.body:
                state.count += 1
                new = self.visit(statement)
                made += [] if new is None else [new]
            node.body = made or [syntax.Pass()]
        node.orelse = self.visit_block(node.orelse)
        return node

    visit_While = visit_For = _loop


def transform(node, ctx):
    """Returns a tree without directives."""
    return DirectivesTransformer(ctx).visit(node)
