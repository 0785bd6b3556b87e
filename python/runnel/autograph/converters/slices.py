"""Replaces elements: `ag__.get_item(a, i, opts)`, and `a = ag__.set_item(a, i, x)` for assignments."""

from runnel.autograph.core import converter
from runnel.autograph.lang import directives
from runnel.autograph.pyct import syntax, templates


def _is_index(node):
    return not isinstance(node, (syntax.Slice, syntax.Tuple))


class SliceTransformer(converter.Base):
    """Replaces the subscripts of a tree that have one index."""

    def visit_Assign(self, node):
        node = self.generic_visit(node)
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, syntax.Subscript) or not _is_index(target.slice) or not isinstance(target.value, syntax.Name):
            return node
        return templates.replace("target = ag__.set_item(target, key, item)", target=target.value, key=target.slice, item=node.value)

    def visit_Subscript(self, node):
        node = self.generic_visit(node)
        if not isinstance(node.ctx, syntax.Load) or not _is_index(node.slice):
            return node
        kind = self.get_definition_directive(node.value, directives.set_element_type, "dtype", syntax.constant(None))
        return templates.replace_as_expression("ag__.get_item(target, key, opts=ag__.GetItemOpts(element_dtype=kind))",
                                               target=node.value, key=node.slice, kind=kind)


def transform(node, ctx):
    """Returns a tree whose elements are converted."""
    return SliceTransformer(ctx).visit(node)
