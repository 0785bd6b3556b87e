"""Replaces reads of names: `ag__.ld(name)` complains about names without a value, which `del` gives them."""

from runnel.autograph.core import converter
from runnel.autograph.pyct import anno, syntax, templates


class VariableAccessTransformer(converter.Base):
    """Replaces the names of a tree."""

    def visit_Name(self, node):
        if isinstance(node.ctx, syntax.Load) and node.id != "ag__" and not anno.hasanno(node, anno.Basic.SKIP_PROCESSING):
            return templates.replace_as_expression("ag__.ld(name)", name=node)
        return node

    def visit_Delete(self, node):
        node = self.generic_visit(node)
        made = []
        for target in node.targets:
            if isinstance(target, syntax.Name):
                made += templates.replace("name = ag__.Undefined(text)", name=target, text=syntax.constant(target.id))
            else:
                made.append(syntax.Delete(targets=[target]))
        return made

    def visit_AugAssign(self, node):
        if not isinstance(node.target, syntax.Name):
            return self.generic_visit(node)
        node.value = self.visit(node.value)
        return [*templates.replace("name = ag__.ld(name)", name=node.target), node]


def transform(node, ctx):
    """Returns a tree with checked names."""
    return VariableAccessTransformer(ctx).visit(node)
