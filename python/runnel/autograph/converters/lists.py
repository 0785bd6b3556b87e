"""Replaces lists: `ag__.new_list`, `l = ag__.list_append(l, x)`, `l, x = ag__.list_pop(l, ...)` and `ag__.list_stack`."""

from runnel.autograph.core import converter
from runnel.autograph.lang import directives
from runnel.autograph.pyct import anno, parser, syntax, templates

_NONE = "None"


class ListTransformer(converter.Base):
    """Replaces what a tree does with lists. A pop inside an expression happens before its statement."""

    def __init__(self, ctx):
        super().__init__(ctx)
        self._pops = []

    def visit_List(self, node):
        node = self.generic_visit(node)
        if not isinstance(node.ctx, syntax.Load):
            return node
        return templates.replace_as_expression("ag__.new_list(elements)", elements=syntax.Tuple(elts=node.elts, ctx=syntax.Load()))

    def _option(self, node, name):
        return self.get_definition_directive(node, directives.set_element_type, name, parser.parse_expression(_NONE))

    def _pop(self, node):
        target = node.func.value
        if anno.getanno(target, anno.Basic.QN, None) is None:
            return node
        name = self.ctx.namer.new_symbol("list_pop", ())
        index = node.args[0] if node.args else parser.parse_expression(_NONE)
        self._pops += templates.replace(
            "target, name = ag__.list_pop(target, index, opts=ag__.ListPopOpts(element_dtype=kind, element_shape=shape))", target=target, name=name,
            index=index, kind=self._option(target, "dtype"), shape=self._option(target, "shape"))
        return templates.replace_as_expression("name", name=name)

    def _is_stack(self, func):
        """Tells whether a function is known to be tf.stack."""
        value, namespace = None, self.ctx.info.namespace or {}
        if isinstance(func, syntax.Name):
            value = namespace.get(func.id)
        elif isinstance(func, syntax.Attribute) and isinstance(func.value, syntax.Name):
            value = getattr(namespace.get(func.value.id), func.attr, None)
        import runnel
        return value is not None and value is runnel.stack

    def visit_Call(self, node):
        node = self.generic_visit(node)
        if isinstance(node.func, syntax.Attribute) and node.func.attr == "pop" and len(node.args) <= 1 and not node.keywords:
            return self._pop(node)
        if self._is_stack(node.func) and len(node.args) == 1 and not node.keywords:
            return templates.replace_as_expression(
                "ag__.list_stack(target, opts=ag__.ListStackOpts(element_dtype=kind, original_call=call))", target=node.args[0], call=node.func,
                kind=self._option(node.args[0], "dtype"))
        return node

    def visit_Expr(self, node):
        call = node.value
        is_append = isinstance(call, syntax.Call) and isinstance(call.func, syntax.Attribute) and call.func.attr == "append" and len(call.args) == 1
        if not is_append or anno.getanno(call.func.value, anno.Basic.QN, None) is None:
            return self.generic_visit(node)
        return templates.replace("target = ag__.list_append(target, x)", target=call.func.value, x=self.visit(call.args[0]))

    def visit(self, node):
        if not isinstance(node, (syntax.Assign, syntax.AugAssign, syntax.Expr, syntax.Return, syntax.Raise, syntax.Assert, syntax.Delete)):
            return super().visit(node)
        before, self._pops = self._pops, []
        made = super().visit(node)
        pops, self._pops = self._pops, before
        return [*pops, *(made if isinstance(made, list) else [made])] if pops else made


def transform(node, ctx):
    """Returns a tree whose lists are converted."""
    return ListTransformer(ctx).visit(node)
